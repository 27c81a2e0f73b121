package slicegate.queue_label_test

import data.slicegate.queue_label

queued := {"kueue.x-k8s.io/queue-name": "lq"}

group_of := {"Pod": "", "Job": "batch", "CronJob": "batch", "PyTorchJob": "kubeflow.org", "DaemonSet": "apps"}

created(kind, root) := {
	"request": {
		"kind": {"group": group_of[kind], "version": "v1", "kind": kind},
		"userInfo": {"username": "dana@example.test"},
		"object": root,
	},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [gpu_workload]},
}

gpu_workload := {"path": "", "demand": {"nvidia.com/gpu.shared": "1"}}

updated(kind, root, old) := object.union(
	created(kind, root),
	{"request": {"oldObject": old}, "slicegate": {"operation": "UPDATE"}},
)

test_pod_without_queue if {
	queue_label.deny == {{
		"msg": "Pod asks for GPUs and names no queue",
		"path": "metadata.labels[kueue.x-k8s.io/queue-name]",
		"fix": "set the label kueue.x-k8s.io/queue-name to the name of a LocalQueue of the Namespace",
	}} with input as created("Pod", {"metadata": {"name": "trainer"}})
}

test_pod_with_queue if {
	count(queue_label.deny) == 0 with input as created("Pod", {"metadata": {"labels": queued}})
}

test_job_without_queue if {
	some finding in queue_label.deny with input as created("Job", {"metadata": {"labels": {"app": "train"}}})
	finding.path == "metadata.labels[kueue.x-k8s.io/queue-name]"
}

test_job_with_queue if {
	count(queue_label.deny) == 0 with input as created("Job", {"metadata": {"labels": queued}})
}

test_pytorchjob_without_queue if {
	count(queue_label.deny) == 1 with input as created("PyTorchJob", {"metadata": {}})
}

test_cronjob_carries_it_on_its_jobs if {
	template := {"metadata": {"labels": queued}}
	count(queue_label.deny) == 0 with input as created("CronJob", {"metadata": {}, "spec": {"jobTemplate": template}})
}

test_cronjob_with_it_in_the_wrong_place if {
	some finding in queue_label.deny with input as created("CronJob", {"metadata": {"labels": queued}, "spec": {}})
	finding.path == "spec.jobTemplate.metadata.labels[kueue.x-k8s.io/queue-name]"
}

test_empty_queue_is_none if {
	empty := {"kueue.x-k8s.io/queue-name": ""}
	count(queue_label.deny) == 1 with input as created("Pod", {"metadata": {"labels": empty}})
}

test_labels_of_other_shapes if {
	count(queue_label.deny) == 1 with input as created("Pod", {"metadata": {"labels": null}})
	count(queue_label.deny) == 1 with input as created("Pod", {"metadata": {"labels": ["lq"]}})
	count(queue_label.deny) == 1 with input as created("Pod", {})
}

test_kind_that_kueue_does_not_manage if {
	count(queue_label.deny) == 0 with input as created("DaemonSet", {"metadata": {}})
}

test_kind_of_another_group if {
	other := object.union(created("Job", {}), {"request": {"kind": {"group": "batch.volcano.sh"}}})
	count(queue_label.deny) == 0 with input as other
}

test_without_gpus if {
	cpu := object.union(created("Pod", {}), {"slicegate": {"workloads": [{"path": "", "demand": {}}]}})
	count(queue_label.deny) == 0 with input as cpu
	none := object.union(created("Pod", {}), {"slicegate": {"workloads": [{"path": "", "demand": {"nvidia.com/gpu": "0"}}]}})
	count(queue_label.deny) == 0 with input as none
}

test_pod_of_a_controller if {
	pod := created("Pod", {"metadata": {}})
	by := {"request": {"userInfo": {"username": "system:serviceaccount:kube-system:job-controller"}}}
	count(queue_label.deny) == 0 with input as object.union(pod, by)
	forged := {"request": {"object": {"metadata": {"ownerReferences": [{"kind": "Job", "controller": true}]}}}}
	count(queue_label.deny) == 1 with input as object.union(pod, forged)
}

test_label_taken_away if {
	old := {"metadata": {"labels": queued}}
	count(queue_label.deny) == 1 with input as updated("Pod", {"metadata": {"labels": {}}}, old)
	count(queue_label.deny) == 1 with input as updated("Job", {"metadata": {}}, old)
}

test_unchanged_object_is_left_alone if {
	old := {"metadata": {"labels": {"a": "b"}, "finalizers": ["x"]}, "spec": {"suspend": true}}
	new := {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": true}}
	count(queue_label.deny) == 0 with input as updated("Job", new, old)
	count(queue_label.deny) == 1 with input as updated("Job", object.union(new, {"spec": {"suspend": false}}), old)
	count(queue_label.deny) == 0 with input as updated("Pod", object.union(new, {"spec": {"suspend": false}}), old)
}

test_parameters if {
	pod := created("Pod", {"metadata": {"labels": {"queue": "lq"}}})
	count(queue_label.deny) == 0 with input as object.union(pod, {"parameters": {"label": "queue"}})
	count(queue_label.deny) == 0 with input as object.union(pod, {"parameters": {"kinds": ["Job"]}})
	count(queue_label.deny) == 0 with input as object.union(pod, {"parameters": {"controllers": ["dana@*"]}})
	count(queue_label.deny) == 1 with input as object.union(pod, {"parameters": {"label": 7, "kinds": null}})
	count(queue_label.deny) == 1 with input as object.union(pod, {"parameters": null})
}
