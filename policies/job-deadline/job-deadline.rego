# METADATA
# scope: package
# title: An active deadline for Jobs on shared cards
# description: >-
#   A Job that hangs keeps its shares until somebody looks. Jobs on shared cards say how long they may run, and that is no
#   longer than the pool's owners allow.
# custom:
#   action: deny
#   parameters:
#     pools: globs of the pools whose workloads are judged
#     maxSeconds: the greatest deadline
package slicegate.job_deadline

defaults := {
	"pools": ["*"],
	"maxSeconds": 86400,
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	input.slicegate.operation in {"CREATE", "UPDATE"}
	some workload in input.slicegate.workloads
	in_pool(workload)
	place := place_of(workload)
	changed(place)
	msg := fault_of(deadline("object", place))
	path := sprintf("%s.activeDeadlineSeconds", [place])
	fix := sprintf("set activeDeadlineSeconds to at most %v", [parameter("maxSeconds")])
}

in_pool(workload) if {
	some pool in workload.pools
	some pattern in parameter("pools")
	glob.match(pattern, ["/"], pool)
}

# Where each kind that runs to an end keeps its deadline.
place_of(workload) := trim_suffix(workload.path, ".template") if {
	input.request.kind.group in {"batch", "jobset.x-k8s.io"}
} else := "spec.runPolicy" if {
	input.request.kind.group == "kubeflow.org"
	endswith(input.slicegate.kind, "Job")
} else := "spec" if {
	[input.request.kind.group, input.slicegate.kind] in [["ray.io", "RayJob"], ["argoproj.io", "Workflow"]]
} else := "spec.workflowSpec" if {
	[input.request.kind.group, input.slicegate.kind] == ["argoproj.io", "CronWorkflow"]
}

fault_of(seconds) := "the Job has no deadline, and may hold its shares for ever" if not is_number(seconds)

fault_of(seconds) := sprintf("the Job may run for %v seconds, and %v are allowed", [seconds, parameter("maxSeconds")]) if {
	is_number(seconds)
	seconds > parameter("maxSeconds")
}

# What is there already is left alone until its deadline or what it runs changes: Kueue resumes it, its owner scales it.
changed(_) if input.slicegate.operation == "CREATE"

changed(place) if deadline("object", place) != deadline("oldObject", place)

changed(_) if without_counts(input.request.object.spec) != without_counts(input.request.oldObject.spec)

without_counts(spec) := object.remove(spec, ["parallelism", "completions", "suspend", "runPolicy"]) if is_object(spec)

# Of the request's `object` or its `oldObject`, which may be null.
deadline(state, place) := object.get(input.request, array.concat([state], keys(sprintf("%s.activeDeadlineSeconds", [place]))), null)

# The steps of a path as it is written: `spec.replicatedJobs[1].template.spec`.
keys(path) := [key | some step in regex.find_n(`\[[^\]]*\]|[^.\[\]]+`, path, -1); key := key_of(step)]

key_of(step) := to_number(trim(step, "[]")) if {
	regex.match(`^\[[0-9]+\]$`, step)
} else := trim(step, "[]")
