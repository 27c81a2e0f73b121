# METADATA
# scope: package
# title: No moving images on shared cards
# description: >-
#   Pods that share a card share its memory and its faults, so what runs on it must be what was tried. An image without a tag,
#   or with a tag that moves, is another program after the next restart. A digest always is in order.
# custom:
#   action: deny
#   parameters:
#     pools: globs of the pools whose workloads are judged
#     tags: globs of the tags that move
package slicegate.pinned_images

defaults := {
	"pools": ["*"],
	"tags": ["latest"],
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	input.slicegate.operation in {"CREATE", "UPDATE"}
	some workload in input.slicegate.workloads
	in_pool(workload)
	some use in images(workload)
	not kept(use)
	fault := fault_of(use.image)
	msg := sprintf("%s runs %s, %s", [use.who, json.marshal(use.image), fault])
	path := sprintf("%s.%s", [trim_prefix(concat(".", [workload.path, "spec"]), "."), use.field])
	fix := "name the image by its digest, or by a tag that stays what it is"
}

in_pool(workload) if {
	some pool in workload.pools
	some pattern in parameter("pools")
	glob.match(pattern, ["/"], pool)
}

images(workload) := containers(workload) | volumes(workload)

containers(workload) := {use |
	some list in ["containers", "initContainers", "ephemeralContainers"]
	is_array(workload.spec[list])
	some index, container in workload.spec[list]
	is_object(container)
	use := {
		"who": sprintf("container %v", [object.get(container, "name", index)]),
		"image": container.image,
		"field": sprintf("%s[%d].image", [list, index]),
	}
}

volumes(workload) := {use |
	is_array(workload.spec.volumes)
	some index, volume in workload.spec.volumes
	is_object(volume)
	use := {
		"who": sprintf("volume %v", [object.get(volume, "name", index)]),
		"image": volume.image.reference,
		"field": sprintf("volumes[%d].image.reference", [index]),
	}
}

# No image at all is left to those who fill it in, and to the API server.
fault_of(image) := "which has no tag" if {
	tag_of(image) == ""
} else := sprintf("and the tag %s moves", [tag]) if {
	tag := tag_of(image)
	some pattern in parameter("tags")
	glob.match(pattern, ["/"], tag)
}

# Only what follows the last slash can hold a tag: before it, a colon is that of a registry's port.
tag_of(image) := concat(":", array.slice(parts, 1, count(parts))) if {
	is_string(image)
	image != ""
	not pinned(image)
	steps := split(image, "/")
	parts := split(steps[count(steps) - 1], ":")
}

pinned(image) if regex.match("@[a-z0-9]+([.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}$", image)

# A Pod that runs the image already is left alone. A template is judged whenever it changes: it makes new Pods.
kept(use) if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind == "Pod"
	walk(input.request.oldObject.spec, [_, value])
	use.image == used(value)
}

kept(_) if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind != "Pod"
	without_counts(input.request.object.spec) == without_counts(input.request.oldObject.spec)
}

used(value) := value.image if {
	is_string(value.image)
} else := value.reference

without_counts(spec) := object.remove(spec, ["replicas", "parallelism", "completions", "suspend"]) if is_object(spec)
