package slicegate.checkpoint_volume_test

import data.slicegate.checkpoint_volume

declared := {"latency": null, "checkpoint": "true"}

claim := {"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt"}}

container(mounts) := {"name": "main", "volumeMounts": mounts}

spec(mounts, volumes) := {"containers": [container(mounts)], "volumes": volumes}

workload(path, pod_spec, class) := {"path": path, "spec": pod_spec, "pools": ["shared"], "class": class}

created(kind, path, pod_spec) := {
	"request": {"kind": {"group": "", "kind": kind}, "object": {"spec": pod_spec}},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [workload(path, pod_spec, declared)]},
}

mount := [{"name": "ckpt", "mountPath": "/ckpt"}]

findings(pod_spec) := found if {
	found := checkpoint_volume.deny with input as created("Pod", "", pod_spec)
}

test_pod_without_a_volume if {
	checkpoint_volume.deny == {{
		"msg": "checkpoints are declared, and no volume that outlives the Pod is mounted for writing",
		"path": "spec.volumes",
		"fix": "mount a PersistentVolumeClaim where the checkpoints go, or declare the checkpoint as stateless or false",
	}} with input as created("Pod", "", spec([], []))
}

test_pod_with_a_claim if {
	count(findings(spec(mount, [claim]))) == 0
}

test_job_without_a_volume if {
	some finding in checkpoint_volume.deny with input as created("Job", "spec.template", spec([], []))
	finding.path == "spec.template.spec.volumes"
}

test_job_with_a_claim if {
	count(checkpoint_volume.deny) == 0 with input as created("Job", "spec.template", spec(mount, [claim]))
}

test_claim_that_is_not_mounted if {
	count(findings(spec([], [claim]))) == 1
	count(findings(spec([{"name": "other", "mountPath": "/ckpt"}], [claim]))) == 1
}

test_claim_that_is_read_only if {
	count(findings(spec([{"name": "ckpt", "readOnly": true}], [claim]))) == 1
	read_only := {"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt", "readOnly": true}}
	count(findings(spec(mount, [read_only]))) == 1
}

test_volumes_that_outlive_the_pod if {
	sources := [{"nfs": {"server": "s"}}, {"csi": {"driver": "gcsfuse.csi.storage.gke.io"}}, {"cephfs": {}}]
	every source in sources {
		count(findings(spec(mount, [object.union(source, {"name": "ckpt"})]))) == 0
	}
}

test_volumes_that_do_not if {
	sources := [
		{"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"ephemeral": {}}, {"csi": {"driver": "inline.example.test"}},
		{"persistentVolumeClaim": null}, {"csi": {"driver": "file.csi.azure.com", "readOnly": true}},
	]
	every source in sources {
		count(findings(spec(mount, [object.union(source, {"name": "ckpt"})]))) == 1
	}
}

test_devices_and_init_containers if {
	block := {"name": "main", "volumeDevices": mount}
	count(findings({"containers": [block], "volumes": [claim]})) == 0
	count(findings({"containers": [], "initContainers": [container(mount)], "volumes": [claim]})) == 0
}

test_claim_templates_of_a_statefulset if {
	templates := {"volumeClaimTemplates": [{"metadata": {"name": "ckpt"}}]}
	set := created("StatefulSet", "spec.template", spec(mount, []))
	count(checkpoint_volume.deny) == 1 with input as set
	count(checkpoint_volume.deny) == 0 with input as object.union(set, {"request": {"object": {"spec": templates}}})
}

test_claim_templates_of_groups if {
	templates := {"volumeClaimTemplates": [{"metadata": {"name": "ckpt"}}]}
	lws := created("LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate", spec(mount, []))
	with_lws := {"request": {"object": {"spec": {"leaderWorkerTemplate": templates}}}}
	count(checkpoint_volume.deny) == 0 with input as object.union(lws, with_lws)
	policies := [{"templates": [{"metadata": {"name": "ckpt"}}]}]
	set := created("JobSet", "spec.replicatedJobs[0].template.spec.template", spec(mount, []))
	with_set := {"request": {"object": {"spec": {"volumeClaimPolicies": policies}}}}
	count(checkpoint_volume.deny) == 0 with input as object.union(set, with_set)
}

test_volumes_of_a_volcano_job if {
	job := object.union(
		created("Job", "spec.tasks[0].template", spec([], [])),
		{"request": {"kind": {"group": "batch.volcano.sh"}}},
	)
	count(checkpoint_volume.deny) == 1 with input as job
	named := [{"mountPath": "/ckpt", "volumeClaimName": "ckpt"}]
	count(checkpoint_volume.deny) == 0 with input as object.union(job, {"request": {"object": {"spec": {"volumes": named}}}})
	made := [{"mountPath": "/ckpt", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]
	count(checkpoint_volume.deny) == 0 with input as object.union(job, {"request": {"object": {"spec": {"volumes": made}}}})
	scratch := [{"mountPath": "/ckpt"}]
	count(checkpoint_volume.deny) == 1 with input as object.union(job, {"request": {"object": {"spec": {"volumes": scratch}}}})
}

test_nothing_declared if {
	every word in ["stateless", "false", null] {
		other := workload("", spec([], []), {"latency": null, "checkpoint": word})
		count(checkpoint_volume.deny) == 0 with input as object.union(
			created("Pod", "", spec([], [])),
			{"slicegate": {"workloads": [other]}},
		)
	}
}

test_pools if {
	pod := created("Pod", "", spec([], []))
	count(checkpoint_volume.deny) == 0 with input as object.union(pod, {"parameters": {"pools": ["other"]}})
	outside := object.union(workload("", spec([], []), declared), {"pools": []})
	count(checkpoint_volume.deny) == 0 with input as object.union(pod, {"slicegate": {"workloads": [outside]}})
}

test_parameters if {
	pod := created("Pod", "", spec(mount, [{"name": "ckpt", "hostPath": {}}]))
	count(checkpoint_volume.deny) == 0 with input as object.union(pod, {"parameters": {"volumes": ["hostPath"]}})
	count(checkpoint_volume.deny) == 1 with input as object.union(pod, {"parameters": {"volumes": "hostPath"}})
}

test_other_shapes if {
	shapes := [null, {}, {"containers": null, "volumes": {}}, {"containers": [{"volumeMounts": null}], "volumes": [null, 1]}]
	every shape in shapes {
		count(findings(shape)) == 1
	}
}

test_updates if {
	new := object.union(spec([], []), {"replicas": 1})
	base := object.union(created("Deployment", "spec.template", new), {"slicegate": {"operation": "UPDATE"}})
	scaled := {"request": {"oldObject": {"spec": object.union(new, {"replicas": 2})}}}
	count(checkpoint_volume.deny) == 0 with input as object.union(base, scaled)
	changed := {"request": {"oldObject": {"spec": object.union(new, {"x": 2})}}}
	count(checkpoint_volume.deny) == 1 with input as object.union(base, changed)
	pod := object.union(base, {"slicegate": {"kind": "Pod"}})
	count(checkpoint_volume.deny) == 0 with input as object.union(pod, changed)
}
