# METADATA
# scope: package
# title: Queue label
# description: >-
#   Where Kueue hands out the GPUs, a workload without the label of its queue starts past the quota, or never. The label
#   stands on the object that Kueue manages, and for a CronJob on the Jobs that it makes.
# custom:
#   action: warn
#   parameters:
#     label: the label key that names the queue
#     kinds: the kinds that are judged, as globs of `Kind` or `Kind.group`
#     controllers: the users, as globs, whose objects carry the label on their owner instead
package slicegate.queue_label

defaults := {
	"label": "kueue.x-k8s.io/queue-name",
	"kinds": [
		"Pod", "Deployment.apps", "StatefulSet.apps", "Job.batch", "CronJob.batch", "JobSet.*", "LeaderWorkerSet.*",
		"*Job.kubeflow.org", "TrainJob.*", "RayCluster.*", "RayJob.*", "RayService.*", "SparkApplication.*",
	],
	"controllers": ["system:kube-controller-manager", "system:serviceaccount:kube-system:*"],
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	judged
	asks_for_gpus
	not by_controller
	not queue
	msg := sprintf("%s asks for GPUs and names no queue", [input.slicegate.kind])
	path := sprintf("%s.labels[%s]", [concat(".", place), parameter("label")])
	fix := sprintf("set the label %s to the name of a LocalQueue of the Namespace", [parameter("label")])
}

judged if {
	input.slicegate.operation in {"CREATE", "UPDATE"}
	changed
	some pattern in parameter("kinds")
	some name in {input.slicegate.kind, concat(".", [input.slicegate.kind, input.request.kind.group])}
	glob.match(pattern, ["/"], name)
}

# What is there already is left alone until its labels or its spec change.
changed if input.slicegate.operation == "CREATE"

changed if labels(input.request.object) != labels(input.request.oldObject)

changed if {
	input.slicegate.kind != "Pod"
	input.request.object.spec != input.request.oldObject.spec
}

labels(root) := [value | some key in ["labels"]; value := root.metadata[key]]

asks_for_gpus if {
	some workload in input.slicegate.workloads
	some amount in workload.demand
	amount != "0"
}

# Pods of a Job, and Jobs of a CronJob or a JobSet, are queued with their owner. Who asks is known by the request's user:
# ownerReferences are anyone's to write.
by_controller if {
	some pattern in parameter("controllers")
	glob.match(pattern, ["/"], input.request.userInfo.username)
}

# Kueue knows no CronJobs: it queues the Jobs that they make.
place := ["spec", "jobTemplate", "metadata"] if {
	input.slicegate.kind == "CronJob"
} else := ["metadata"]

queue := name if {
	name := object.get(input.request.object, array.concat(place, ["labels", parameter("label")]), null)
	is_string(name)
	name != ""
}
