package slicegate.share_cap_test

import data.slicegate.share_cap

share := {"nvidia.com/gpu.shared": "1"}

created(kind, spec, paths) := {
	"request": {"namespace": "team-vision", "object": {"spec": spec}},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [work | some path in paths; work := workload(path)]},
}

workload(path) := {"path": path, "demand": share}

held(kind, spec, paths) := shares if {
	shares := share_cap.total(input.request.object) with input as created(kind, spec, paths)
}

test_deployment_over_the_cap if {
	share_cap.deny == {{
		"msg": "the workload holds 9 shares at full scale, and may hold 8",
		"path": "spec.replicas",
		"fix": "lower the count, or run it on exclusive GPUs",
	}} with input as created("Deployment", {"replicas": 9}, ["spec.template"])
}

test_deployment_at_the_cap if {
	count(share_cap.deny) == 0 with input as created("Deployment", {"replicas": 8}, ["spec.template"])
}

test_pod_over_the_cap if {
	greedy := {"slicegate": {"workloads": [{"path": "", "demand": {"nvidia.com/gpu.shared": "9"}}]}}
	some finding in share_cap.deny with input as object.union(created("Pod", {}, [""]), greedy)
	finding.path == "spec"
}

test_pod_under_the_cap if {
	count(share_cap.deny) == 0 with input as created("Pod", {}, [""])
}

test_plain_kinds if {
	every kind in ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Rollout"] {
		held(kind, {"replicas": 3}, ["spec.template"]) == 3
		held(kind, {}, ["spec.template"]) == 1
		held(kind, {"replicas": 0}, ["spec.template"]) == 0
	}
}

test_jobs if {
	held("Job", {}, ["spec.template"]) == 1
	held("Job", {"parallelism": 5}, ["spec.template"]) == 5
	held("Job", {"parallelism": 5, "completions": 3}, ["spec.template"]) == 3
	held("Job", {"parallelism": 2, "completions": 30}, ["spec.template"]) == 2
	held("Job", {"completions": 30}, ["spec.template"]) == 1
	job := {"spec": {"parallelism": 4, "completions": 9}}
	held("CronJob", {"jobTemplate": job}, ["spec.jobTemplate.spec.template"]) == 4
}

test_jobset if {
	path := "spec.replicatedJobs[%d].template.spec.template"
	jobs := [{"replicas": 2, "template": {"spec": {"parallelism": 4}}}, {"template": {"spec": {}}}]
	held("JobSet", {"replicatedJobs": jobs}, [sprintf(path, [0]), sprintf(path, [1])]) == 9
}

test_kubeflow if {
	path := "spec.pytorchReplicaSpecs.%s.template"
	roles := {"Master": {"replicas": 1, "template": {}}, "Worker": {"replicas": 3, "template": {}}}
	paths := [sprintf(path, ["Master"]), sprintf(path, ["Worker"])]
	held("PyTorchJob", {"pytorchReplicaSpecs": roles}, paths) == 4
	elastic := {"pytorchReplicaSpecs": roles, "elasticPolicy": {"maxReplicas": 6}}
	held("PyTorchJob", elastic, paths) == 7
	held("TFJob", {"tfReplicaSpecs": {"PS": {"replicas": 2}}}, ["spec.tfReplicaSpecs.PS.template"]) == 2
	named := {"mpiReplicaSpecs": {"my-worker": {"replicas": 5}}}
	held("MPIJob", named, ["spec.mpiReplicaSpecs[my-worker].template"]) == 5
}

test_raycluster if {
	groups := [{"groupName": "gpu", "replicas": 2, "maxReplicas": 2147483647, "numOfHosts": 2}]
	fixed := {"headGroupSpec": {}, "workerGroupSpecs": groups}
	paths := ["spec.headGroupSpec.template", "spec.workerGroupSpecs[0].template"]
	held("RayCluster", fixed, paths) == 5
	scaling := object.union(fixed, {"enableInTreeAutoscaling": true})
	held("RayCluster", scaling, paths) == 4294967295
	some finding in share_cap.deny with input as created("RayCluster", scaling, paths)
	finding.path == "spec.workerGroupSpecs[0].maxReplicas"
	below := ["spec.rayClusterSpec.workerGroupSpecs[0].template"]
	held("RayJob", {"rayClusterSpec": scaling}, below) == 4294967294
	held("RayJob", {"rayClusterSpec": fixed}, below) == 4
	held("RayService", {"rayClusterConfig": scaling}, ["spec.rayClusterConfig.workerGroupSpecs[0].template"]) == 4294967294
}

test_leaderworkerset if {
	both := {"size": 4, "leaderTemplate": {}, "workerTemplate": {}}
	paths := ["spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"]
	held("LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": both}, paths) == 8
	alone := {"replicas": 2, "leaderWorkerTemplate": object.remove(both, ["leaderTemplate"])}
	held("LeaderWorkerSet", alone, ["spec.leaderWorkerTemplate.workerTemplate"]) == 8
}

test_other_kinds if {
	held("Job", {"tasks": [{"replicas": 3}]}, ["spec.tasks[0].template"]) == 3
	held("SparkApplication", {"executor": {"instances": 6}}, ["spec.executor"]) == 6
	held("TrainJob", {"trainer": {"numNodes": 4}}, ["spec.trainer"]) == 4
	held("InferenceService", {"predictor": {"minReplicas": 1, "maxReplicas": 5}}, ["spec.predictor"]) == 5
	held("DaemonSet", {}, ["spec.template"]) == 1
}

test_counts_of_other_shapes if {
	every count_of_other_shape in [null, "9", -3, {}, [9], true] {
		held("Deployment", {"replicas": count_of_other_shape}, ["spec.template"]) == 1
	}
	held("Deployment", null, ["spec.template"]) == 1
	held("JobSet", {"replicatedJobs": null}, ["spec.replicatedJobs[0].template.spec.template"]) == 1
}

test_other_resources if {
	exclusive := [{"path": "spec.template", "demand": {"nvidia.com/gpu": "8"}}]
	base := created("Deployment", {"replicas": 9}, ["spec.template"])
	count(share_cap.deny) == 0 with input as object.union(base, {"slicegate": {"workloads": exclusive}})
	mig := [{"path": "spec.template", "demand": {"nvidia.com/mig-1g.10gb.shared": "1"}}]
	count(share_cap.deny) == 1 with input as object.union(base, {"slicegate": {"workloads": mig}})
}

test_caps if {
	nine := created("Deployment", {"replicas": 9}, ["spec.template"])
	count(share_cap.deny) == 0 with input as object.union(nine, {"parameters": {"maxShares": 9}})
	count(share_cap.deny) == 1 with input as object.union(nine, {"parameters": {"maxShares": "9"}})
	special := {"parameters": {"maxShares": 1, "namespaces": {"team-*": 12, "*": 2}}}
	count(share_cap.deny) == 0 with input as object.union(nine, special)
	count(share_cap.deny) == 1 with input as object.union(nine, {"parameters": {"namespaces": {"team-*": "many"}}})
	none := {"parameters": {"namespaces": {"team-*": 0}}}
	count(share_cap.deny) == 1 with input as object.union(created("Pod", {}, [""]), none)
}

from(spec) := object.union(
	created("Deployment", {"replicas": 10, "x": 1}, ["spec.template"]),
	{"request": {"oldObject": {"spec": spec}}, "slicegate": {"operation": "UPDATE"}},
)

test_updates if {
	count(share_cap.deny) == 0 with input as from({"replicas": 12, "x": 1})
	count(share_cap.deny) == 0 with input as from({"replicas": 10, "x": 1})
	count(share_cap.deny) == 1 with input as from({"replicas": 10, "x": 2})
	count(share_cap.deny) == 1 with input as from({"replicas": 9, "x": 1})
}
