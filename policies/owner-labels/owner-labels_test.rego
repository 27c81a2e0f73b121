package slicegate.owner_labels_test

import data.slicegate.owner_labels

both := {"owner": "vision", "cost-center": "4711"}

created(kind, path, labels) := {
	"request": {"object": {"spec": {"x": labels}}},
	"slicegate": {"kind": kind, "operation": "CREATE", "namespaceLabels": {}, "workloads": [workload(path, labels)]},
}

workload(path, labels) := {"path": path, "metadata": {"labels": labels}, "demand": {"nvidia.com/gpu.shared": "1"}}

test_pod_without_labels if {
	owner_labels.deny == {
		{
			"msg": "the label owner of a Pod that asks for GPUs is missing",
			"path": "metadata.labels[owner]",
			"fix": "set the label owner",
		},
		{
			"msg": "the label cost-center of a Pod that asks for GPUs is missing",
			"path": "metadata.labels[cost-center]",
			"fix": "set the label cost-center",
		},
	} with input as created("Pod", "", {})
}

test_pod_with_labels if {
	count(owner_labels.deny) == 0 with input as created("Pod", "", both)
}

test_deployment_without_one_label if {
	some finding in owner_labels.deny with input as created("Deployment", "spec.template", {"owner": "vision"})
	finding.path == "spec.template.metadata.labels[cost-center]"
}

test_deployment_with_labels if {
	count(owner_labels.deny) == 0 with input as created("Deployment", "spec.template", both)
}

test_labels_of_the_namespace_count if {
	pod := created("Pod", "", {"owner": "vision"})
	count(owner_labels.deny) == 0 with input as object.union(pod, {"slicegate": {"namespaceLabels": both}})
	only := {"parameters": {"fromNamespace": false}, "slicegate": {"namespaceLabels": both}}
	count(owner_labels.deny) == 1 with input as object.union(pod, only)
}

test_pattern if {
	four := {"parameters": {"labels": {"cost-center": "[0-9]{4}"}}}
	count(owner_labels.deny) == 0 with input as object.union(created("Pod", "", both), four)
	some finding in owner_labels.deny with input as object.union(created("Pod", "", {"cost-center": "471100"}), four)
	finding.msg == `the label cost-center of a Pod that asks for GPUs is "471100"`
	finding.fix == "set the label cost-center to what matches [0-9]{4}"
}

test_alternatives_match_as_a_whole if {
	either := {"parameters": {"labels": {"owner": "a|b"}}}
	count(owner_labels.deny) == 0 with input as object.union(created("Pod", "", {"owner": "b"}), either)
	count(owner_labels.deny) == 1 with input as object.union(created("Pod", "", {"owner": "bc"}), either)
}

test_empty_and_other_types if {
	count(owner_labels.deny) == 2 with input as created("Pod", "", {"owner": "", "cost-center": 4711})
	count(owner_labels.deny) == 2 with input as created("Pod", "", null)
	bare := {"slicegate": {"workloads": [{"path": "", "metadata": null, "demand": {"nvidia.com/gpu": "2"}}]}}
	count(owner_labels.deny) == 2 with input as object.union(created("Pod", "", {}), bare)
}

test_without_gpus if {
	none := {"slicegate": {"workloads": [{"path": "", "metadata": {}, "demand": {"nvidia.com/gpu": "0"}}]}}
	count(owner_labels.deny) == 0 with input as object.union(created("Pod", "", {}), none)
}

test_updates if {
	pod := object.union(created("Pod", "", {}), {"slicegate": {"operation": "UPDATE"}})
	count(owner_labels.deny) == 0 with input as object.union(pod, {"request": {"oldObject": {"metadata": {"labels": {}}}}})
	count(owner_labels.deny) == 2 with input as object.union(pod, {"request": {"oldObject": {"metadata": {"labels": both}}}})
	job := object.union(created("Job", "spec.template", {}), {"slicegate": {"operation": "UPDATE"}})
	count(owner_labels.deny) == 0 with input as object.union(job, {"request": {"oldObject": {"spec": {"x": {}}}}})
	count(owner_labels.deny) == 2 with input as object.union(job, {"request": {"oldObject": {"spec": {"x": both}}}})
}
