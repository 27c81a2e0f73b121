package slicegate.mig_profiles_test

import data.slicegate.mig_profiles

resources(profile) := {"limits": {sprintf("nvidia.com/mig-%s", [profile]): "1"}}

spec(profile) := {"containers": [{"name": "main", "resources": resources(profile)}]}

created(kind, path, profile) := {
	"request": {"namespace": "team-vision", "object": {"spec": spec(profile)}},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [workload(path, profile)]},
}

workload(path, profile) := {"path": path, "spec": spec(profile), "demand": resources(profile).limits}

test_large_profile_of_a_pod if {
	mig_profiles.deny == {{
		"msg": "namespace team-vision may not ask for the MIG profile 3g.40gb",
		"path": "spec.containers[0].resources.limits[nvidia.com/mig-3g.40gb]",
		"fix": "ask for one of 1g.*, or have the profile allowed for the namespace",
	}} with input as created("Pod", "", "3g.40gb")
}

test_small_profile_of_a_pod if {
	count(mig_profiles.deny) == 0 with input as created("Pod", "", "1g.10gb")
}

test_large_profile_of_a_statefulset if {
	some finding in mig_profiles.deny with input as created("StatefulSet", "spec.template", "7g.80gb")
	finding.path == "spec.template.spec.containers[0].resources.limits[nvidia.com/mig-7g.80gb]"
}

test_small_profile_of_a_statefulset if {
	count(mig_profiles.deny) == 0 with input as created("StatefulSet", "spec.template", "1g.10gb")
}

test_shared_profile if {
	count(mig_profiles.deny) == 0 with input as created("Pod", "", "1g.10gb.shared")
	some finding in mig_profiles.deny with input as created("Pod", "", "2g.20gb.shared")
	finding.msg == "namespace team-vision may not ask for the MIG profile 2g.20gb"
}

test_other_resources if {
	pod := {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}]}
	plain := [{"path": "", "spec": pod, "demand": {"nvidia.com/gpu.shared": "1"}}]
	count(mig_profiles.deny) == 0 with input as object.union(
		created("Pod", "", "3g.40gb"),
		{"slicegate": {"workloads": plain}},
	)
}

test_every_container_and_requests if {
	init := {"name": "warm", "resources": {"requests": {"nvidia.com/mig-3g.40gb": "1"}}}
	both := object.union(spec("3g.40gb"), {"initContainers": [init]})
	work := object.union(workload("spec.template", "3g.40gb"), {"spec": both})
	found := {finding.path | some finding in mig_profiles.deny} with input as object.union(
		created("Job", "spec.template", "3g.40gb"),
		{"slicegate": {"workloads": [work]}},
	)
	found == {
		"spec.template.spec.containers[0].resources.limits[nvidia.com/mig-3g.40gb]",
		"spec.template.spec.initContainers[0].resources.requests[nvidia.com/mig-3g.40gb]",
	}
}

test_pod_level_demand_and_other_shapes if {
	base := created("Pod", "", "3g.40gb")
	every shape in [null, {}, {"containers": null}, {"containers": ["x", null, {"resources": []}]}] {
		work := {"path": "", "spec": shape, "demand": resources("3g.40gb").limits}
		found := {finding.path | some finding in mig_profiles.deny} with input as object.union(
			base,
			{"slicegate": {"workloads": [work]}},
		)
		found == {"spec"}
	}
}

test_namespace_with_more if {
	pod := created("Pod", "", "3g.40gb")
	more := {"parameters": {"namespaces": {"team-*": ["3g.*"]}}}
	count(mig_profiles.deny) == 0 with input as object.union(pod, more)
	other := {"parameters": {"namespaces": {"batch-*": ["3g.*"]}}}
	count(mig_profiles.deny) == 1 with input as object.union(pod, other)
}

test_profiles_for_all if {
	pod := created("Pod", "", "3g.40gb")
	count(mig_profiles.deny) == 0 with input as object.union(pod, {"parameters": {"profiles": ["[13]g.*"]}})
	count(mig_profiles.deny) == 1 with input as object.union(pod, {"parameters": {"profiles": []}})
	count(mig_profiles.deny) == 1 with input as object.union(pod, {"parameters": {"profiles": "3g.*"}})
}

test_what_holds_it_already if {
	pod := object.union(created("Pod", "", "3g.40gb"), {"slicegate": {"operation": "UPDATE"}})
	count(mig_profiles.deny) == 0 with input as object.union(pod, {"request": {"oldObject": {"spec": spec("3g.40gb")}}})
	set := object.union(created("StatefulSet", "spec.template", "3g.40gb"), {"slicegate": {"operation": "UPDATE"}})
	count(mig_profiles.deny) == 0 with input as object.union(set, {"request": {"oldObject": {"spec": spec("3g.40gb")}}})
	count(mig_profiles.deny) == 1 with input as object.union(set, {"request": {"oldObject": {"spec": spec("1g.10gb")}}})
}
