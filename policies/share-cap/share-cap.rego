# METADATA
# scope: package
# title: A cap on the shares of one workload
# description: >-
#   Each Pod of a workload may be within the limits of its pool while all of them together take it whole. What the object
#   can hold at once is counted: the shares of a Pod times replicas, parallelism (no more than completions), groups, hosts
#   and sizes on the way to its template, with the upper bound where it scales by itself. What scales the object from
#   outside, an autoscaler or `kubectl scale`, is not seen.
# custom:
#   action: deny
#   parameters:
#     resources: globs of the resources that are shares
#     maxShares: the shares that one workload may hold at full scale
#     namespaces: glob of Namespaces to the number that holds there instead; the greatest, where several match
package slicegate.share_cap

defaults := {
	"resources": ["nvidia.com/gpu.shared", "nvidia.com/mig-*.shared"],
	"maxShares": 8,
	"namespaces": {},
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	judged
	total(input.request.object) > cap
	msg := sprintf("the workload holds %v shares at full scale, and may hold %v", [total(input.request.object), cap])
	path := array.concat(sort(fields), ["spec"])[0]
	fix := "lower the count, or run it on exclusive GPUs"
}

judged if input.slicegate.operation == "CREATE"

# What is there already may shrink, however large it is.
judged if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind != "Pod"
	input.request.object.spec != input.request.oldObject.spec
	total(input.request.object) >= total(input.request.oldObject)
}

cap := max(special) if {
	count(special) > 0
} else := parameter("maxShares")

special := {number |
	some pattern, number in parameter("namespaces")
	is_number(number)
	glob.match(pattern, ["/"], input.request.namespace)
}

total(root) := sum([number |
	some workload in input.slicegate.workloads
	number := shares(workload) * pods(root, workload.path)
])

shares(workload) := sum([to_number(amount) |
	some resource, amount in workload.demand
	is_share(resource)
	regex.match("^[0-9]+$", amount)
])

is_share(resource) if {
	some pattern in parameter("resources")
	glob.match(pattern, ["/"], resource)
}

# How many Pods the object makes of a template: the counts of every level on the way to it, multiplied.
pods(root, path) := product([number |
	some end, _ in steps(path)
	level := object.get(root, keys(path, end + 1), null)
	is_object(level)
	some number in [
		replicas(root, path, level),
		at_once(level),
		members(path, level),
		whole(level, "instances", 1),
		whole(level, "numNodes", 1),
		whole(level, "numOfHosts", 1),
	]
])

# What scales by itself counts with its upper bound, which is read where it is in force only: Ray's API fills it in always.
replicas(root, path, level) := max([whole(level, "replicas", 1), whole(level, "maxReplicas", 1)]) if {
	is_string(level.groupName)
	autoscaled(root)
} else := max([whole(level, "replicas", 1), whole(elastic, "maxReplicas", 1)]) if {
	is_object(level.template)
	elastic := root.spec.elasticPolicy
	startswith(path, "spec.pytorchReplicaSpecs.Worker.")
} else := max([whole(level, "minReplicas", 1), whole(level, "maxReplicas", 1)]) if {
	input.slicegate.kind == "InferenceService"
} else := whole(level, "replicas", 1)

autoscaled(root) if root.spec.enableInTreeAutoscaling == true

autoscaled(root) if root.spec.rayClusterSpec.enableInTreeAutoscaling == true

autoscaled(root) if root.spec.rayClusterConfig.enableInTreeAutoscaling == true

# A Job never runs more Pods at once than are still to complete.
at_once(level) := min([whole(level, "parallelism", 1), whole(level, "completions", 1)]) if {
	is_number(level.completions)
} else := whole(level, "parallelism", 1)

# A LeaderWorkerSet's size is that of a group, its leader among them.
members(path, level) := whole(level, "size", 1) - leaders(level) if {
	is_object(level.workerTemplate)
	endswith(path, "workerTemplate")
} else := 1

leaders(level) := 1 if {
	is_object(level.leaderTemplate)
} else := 0

whole(level, field, absent) := level[field] if {
	is_number(level[field])
	level[field] >= 0
} else := absent

# The steps of a path as it is written: `spec`, `replicatedJobs`, `[1]`, `template`.
steps(path) := regex.find_n(`\[[^\]]*\]|[^.\[\]]+`, path, -1)

keys(path, length) := [key | some step in array.slice(steps(path), 0, length); key := key_of(step)]

key_of(step) := to_number(trim(step, "[]")) if {
	regex.match(`^\[[0-9]+\]$`, step)
} else := trim(step, "[]")

# The counts that make the number what it is.
fields contains field if {
	some workload in input.slicegate.workloads
	shares(workload) > 0
	some end, _ in steps(workload.path)
	level := object.get(input.request.object, keys(workload.path, end + 1), null)
	some name in ["replicas", "parallelism", "maxReplicas", "size", "instances", "numNodes"]
	level[name] > 1
	field := sprintf("%s.%s", [written(array.slice(steps(workload.path), 0, end + 1)), name])
}

written(some_steps) := trim_prefix(concat("", [text | some step in some_steps; text := joined(step)]), ".")

joined(step) := step if {
	startswith(step, "[")
} else := sprintf(".%s", [step])
