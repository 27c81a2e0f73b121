package slicegate.pinned_images_test

import data.slicegate.pinned_images

digest := "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

spec(image) := {"containers": [{"name": "main", "image": image}]}

created(kind, path, pod_spec) := {
	"request": {"object": {"spec": pod_spec}},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [workload(path, pod_spec)]},
}

workload(path, pod_spec) := {"path": path, "spec": pod_spec, "pools": ["shared"]}

faults(image) := found if {
	found := {finding.msg | some finding in pinned_images.deny} with input as created("Pod", "", spec(image))
}

test_latest_in_a_pod if {
	pinned_images.deny == {{
		"msg": `container main runs "nvcr.io/nvidia/pytorch:latest", and the tag latest moves`,
		"path": "spec.containers[0].image",
		"fix": "name the image by its digest, or by a tag that stays what it is",
	}} with input as created("Pod", "", spec("nvcr.io/nvidia/pytorch:latest"))
}

test_tag_in_a_pod if {
	count(faults("nvcr.io/nvidia/pytorch:26.10-py3")) == 0
}

test_latest_in_a_cronjob if {
	some finding in pinned_images.deny with input as created("CronJob", "spec.jobTemplate.spec.template", spec("a:latest"))
	finding.path == "spec.jobTemplate.spec.template.spec.containers[0].image"
}

test_tag_in_a_cronjob if {
	count(pinned_images.deny) == 0 with input as created("CronJob", "spec.jobTemplate.spec.template", spec("a:1"))
}

test_images_without_a_tag if {
	every image in ["pytorch", "nvidia/pytorch", "registry.example.test:5000/pytorch", "localhost:5000/a/b", "a:"] {
		some fault in faults(image)
		endswith(fault, "which has no tag")
	}
}

test_images_that_stay if {
	every image in ["a:1", "registry.example.test:5000/a:1", "registry.example.test:5000/a:v1.latest", "a:Latest"] {
		count(faults(image)) == 0
	}
}

test_digests if {
	every image in ["a@", "a:latest@", "registry.example.test:5000/a/b@"] {
		count(faults(concat("", [image, digest]))) == 0
	}
}

test_what_only_looks_like_a_digest if {
	count(faults("a@sha256")) == 1
	count(faults("registry.example.test/a@b")) == 1
}

test_no_image if {
	every image in ["", null, 7, ["a:latest"]] {
		count(faults(image)) == 0
	}
}

test_all_kinds_of_containers_and_volumes if {
	containers := [{"name": "x", "image": "a:latest"}]
	everywhere := {
		"initContainers": containers,
		"containers": containers,
		"ephemeralContainers": containers,
		"volumes": [{"name": "empty", "emptyDir": {}}, {"name": "model", "image": {"reference": "models/a"}}],
	}
	found := {finding.path | some finding in pinned_images.deny} with input as created("Pod", "", everywhere)
	found == {
		"spec.initContainers[0].image", "spec.containers[0].image", "spec.ephemeralContainers[0].image",
		"spec.volumes[1].image.reference",
	}
}

test_other_shapes if {
	every shape in [null, [], {"containers": null, "volumes": "x"}, {"containers": [null, 1, {"image": {}}]}] {
		count(pinned_images.deny) == 0 with input as created("Pod", "", shape)
	}
}

test_container_without_a_name if {
	some finding in pinned_images.deny with input as created("Service", "spec.template", {"containers": [{"image": "a"}]})
	finding.msg == `container 0 runs "a", which has no tag`
}

test_outside_of_the_pools if {
	pod := created("Pod", "", spec("a:latest"))
	outside := object.union(workload("", spec("a:latest")), {"pools": []})
	count(pinned_images.deny) == 0 with input as object.union(pod, {"slicegate": {"workloads": [outside]}})
	count(pinned_images.deny) == 0 with input as object.union(pod, {"parameters": {"pools": ["a100-*"]}})
	count(pinned_images.deny) == 1 with input as object.union(pod, {"parameters": {"pools": ["sha*"]}})
}

test_other_tags if {
	more := {"parameters": {"tags": ["latest", "nightly*"]}}
	count(pinned_images.deny) == 1 with input as object.union(created("Pod", "", spec("a:nightly-1")), more)
	count(pinned_images.deny) == 0 with input as object.union(created("Pod", "", spec("a:weekly-1")), more)
}

update(kind, path, new, old) := object.union(
	created(kind, path, new),
	{"request": {"oldObject": {"spec": old}}, "slicegate": {"operation": "UPDATE"}},
)

test_pod_that_runs_it_already if {
	old := spec("a:latest")
	count(pinned_images.deny) == 0 with input as update("Pod", "", old, old)
	debug := object.union(old, {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]})
	found := {finding.path | some finding in pinned_images.deny} with input as update("Pod", "", debug, old)
	found == {"spec.ephemeralContainers[0].image"}
}

test_template_that_changes if {
	old := object.union(spec("a:latest"), {"replicas": 3})
	smaller := object.union(old, {"replicas": 1})
	count(pinned_images.deny) == 0 with input as update("Deployment", "spec.template", smaller, old)
	restarted := object.union(old, {"restarted": "now"})
	count(pinned_images.deny) == 1 with input as update("Deployment", "spec.template", restarted, old)
}
