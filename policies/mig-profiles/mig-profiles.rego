# METADATA
# scope: package
# title: MIG profiles by namespace
# description: >-
#   Large MIG profiles are few, and one that is taken by a small workload is missed by a large one. Every Namespace may ask
#   for the small profiles, and for more of them where a list says so.
# custom:
#   action: deny
#   parameters:
#     profiles: globs of the profiles that every Namespace may ask for
#     namespaces: glob of Namespaces to globs of the profiles that they may ask for as well
package slicegate.mig_profiles

defaults := {
	"profiles": ["1g.*"],
	"namespaces": {},
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	input.slicegate.operation in {"CREATE", "UPDATE"}
	some workload in input.slicegate.workloads
	some resource, amount in workload.demand
	amount != "0"
	profile := profile_of(resource)
	not allowed(profile)
	not held(resource)
	some path in fields(workload, resource)
	msg := sprintf("namespace %s may not ask for the MIG profile %s", [namespace, profile])
	fix := sprintf("ask for one of %s, or have the profile allowed for the namespace", [concat(", ", patterns)])
}

namespace := input.request.namespace

# `nvidia.com/mig-3g.40gb`, with what a pool's own name adds to it, is the profile `3g.40gb`.
profile_of(resource) := trim_suffix(trim_prefix(resource, "nvidia.com/mig-"), ".shared") if {
	startswith(resource, "nvidia.com/mig-")
}

allowed(profile) if {
	some pattern in patterns
	glob.match(pattern, ["/"], profile)
}

patterns contains pattern if some pattern in parameter("profiles")

patterns contains pattern if {
	some glob_of_names, profiles in parameter("namespaces")
	glob.match(glob_of_names, ["/"], namespace)
	some pattern in profiles
}

# A Pod that holds the profile already keeps it: nothing can be taken from it but by its end.
held(resource) if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind == "Pod"
	walk(input.request.oldObject.spec, [path, _])
	path[count(path) - 1] == resource
}

# An object whose templates stay as they are is left alone, so that it can be scaled down and cleaned up.
held(resource) if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind != "Pod"
	mentions(input.request.object, resource) == mentions(input.request.oldObject, resource)
}

mentions(root, resource) := {path: amount |
	walk(root.spec, [path, amount])
	path[count(path) - 1] == resource
}

# Where the containers name the resource; where none does, it is the Pod as a whole that asks.
fields(workload, resource) := found if {
	found := named(workload, resource)
	count(found) > 0
} else := {spec_path(workload)}

named(workload, resource) := {path |
	some list in ["containers", "initContainers"]
	is_array(workload.spec[list])
	some index, container in workload.spec[list]
	some kind in ["limits", "requests"]
	not doubled(container, kind, resource)
	_ = container.resources[kind][resource]
	path := sprintf("%s.%s[%d].resources.%s[%s]", [spec_path(workload), list, index, kind, resource])
}

# Requests repeat limits on every Pod.
doubled(container, "requests", resource) if _ = container.resources.limits[resource]

spec_path(workload) := trim_prefix(concat(".", [workload.path, "spec"]), ".")
