# METADATA
# scope: package
# title: Owner and cost labels
# description: >-
#   A GPU that nobody owns is paid by nobody and freed by nobody. Pods that ask for GPUs carry labels that say whose they are
#   and who pays; those of the Namespace count for all Pods in it.
# custom:
#   action: warn
#   parameters:
#     labels: label key to the regular expression that its whole value matches
#     fromNamespace: whether the Namespace's label counts where the Pod has none
package slicegate.owner_labels

defaults := {
	"labels": {"owner": ".+", "cost-center": ".+"},
	"fromNamespace": true,
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	input.slicegate.operation in {"CREATE", "UPDATE"}
	some workload in input.slicegate.workloads
	changed(workload)
	some amount in workload.demand
	amount != "0"
	some key, pattern in parameter("labels")
	fault := fault_of(label(workload, key), pattern)
	msg := sprintf("the label %s of a Pod that asks for GPUs %s", [key, fault])
	path := sprintf("%s.labels[%s]", [trim_prefix(concat(".", [workload.path, "metadata"]), "."), key])
	fix := sprintf("set the label %s%s", [key, wanted(pattern)])
}

fault_of(null, _) := "is missing"

fault_of(value, pattern) := sprintf("is %s", [json.marshal(value)]) if {
	value != null
	not matches(value, pattern)
}

matches(value, pattern) if {
	is_string(value)
	regex.match(concat("", ["^(?:", pattern, ")$"]), value)
}

wanted(pattern) := "" if {
	pattern in {".+", ".*"}
} else := sprintf(" to what matches %s", [pattern])

label(workload, key) := value if {
	value := workload.metadata.labels[key]
	value != null
} else := value if {
	parameter("fromNamespace")
	value := input.slicegate.namespaceLabels[key]
} else := null

# What is there already is left alone until its labels or its templates change.
changed(_) if input.slicegate.operation == "CREATE"

changed(workload) if {
	input.slicegate.kind == "Pod"
	object.get(workload, ["metadata", "labels"], {}) != object.get(input.request, ["oldObject", "metadata", "labels"], {})
}

changed(_) if {
	input.slicegate.kind != "Pod"
	input.request.object.spec != input.request.oldObject.spec
}
