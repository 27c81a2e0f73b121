# METADATA
# scope: package
# title: A volume for checkpoints
# description: >-
#   A workload that declares checkpoints, and mounts nothing that outlives its Pod, loses them with the Pod. It mounts a
#   persistent volume that it can write to.
# custom:
#   action: warn
#   parameters:
#     pools: globs of the pools whose workloads are judged
#     volumes: the kinds of volumes that outlive a Pod
#     csiDrivers: globs of the drivers whose inline volumes outlive a Pod
package slicegate.checkpoint_volume

defaults := {
	"pools": ["*"],
	"volumes": ["persistentVolumeClaim", "nfs", "cephfs", "azureFile", "glusterfs", "iscsi", "fc", "rbd"],
	"csiDrivers": ["gcsfuse.csi.storage.gke.io", "file.csi.azure.com"],
}

# A document that is missing, or a value of another type, leaves the default.
parameter(name) := input.parameters[name] if {
	type_name(input.parameters[name]) == type_name(defaults[name])
} else := defaults[name]

deny contains {"msg": msg, "path": path, "fix": fix} if {
	judged
	some workload in input.slicegate.workloads
	workload.class.checkpoint == "true"
	in_pool(workload)
	not keeps(workload)
	msg := "checkpoints are declared, and no volume that outlives the Pod is mounted for writing"
	path := trim_prefix(concat(".", [workload.path, "spec", "volumes"]), ".")
	fix := "mount a PersistentVolumeClaim where the checkpoints go, or declare the checkpoint as stateless or false"
}

# What is there already is left alone until its templates change; the volumes of a Pod never do.
judged if input.slicegate.operation == "CREATE"

judged if {
	input.slicegate.operation == "UPDATE"
	input.slicegate.kind != "Pod"
	without_counts(input.request.object.spec) != without_counts(input.request.oldObject.spec)
}

without_counts(spec) := object.remove(spec, ["replicas", "parallelism", "completions", "suspend"]) if is_object(spec)

in_pool(workload) if {
	some pool in workload.pools
	some pattern in parameter("pools")
	glob.match(pattern, ["/"], pool)
}

keeps(workload) if {
	some name in mounted(workload)
	name in (persistent(workload) | claimed)
}

# Volcano mounts the volumes of a Job into all its Pods.
keeps(_) if {
	input.request.kind.group == "batch.volcano.sh"
	is_array(input.request.object.spec.volumes)
	some volume in input.request.object.spec.volumes
	is_string(volume.mountPath)
	claims(volume)
}

claims(volume) if is_string(volume.volumeClaimName)

claims(volume) if is_object(volume.volumeClaim)

# The names of the volumes that some container can write to.
mounted(workload) := {mount.name |
	some list in ["containers", "initContainers"]
	is_array(workload.spec[list])
	some container in workload.spec[list]
	some field in ["volumeMounts", "volumeDevices"]
	is_array(container[field])
	some mount in container[field]
	not mount.readOnly == true
}

# The names of the Pod's own volumes that outlive it.
persistent(workload) := {volume.name |
	is_array(workload.spec.volumes)
	some volume in workload.spec.volumes
	outlives(volume)
}

outlives(volume) if {
	some kind in parameter("volumes")
	source := volume[kind]
	is_object(source)
	not source.readOnly == true
}

outlives(volume) if {
	not volume.csi.readOnly == true
	some pattern in parameter("csiDrivers")
	glob.match(pattern, ["/"], volume.csi.driver)
}

# Claims that a controller makes for each Pod, and adds to its volumes by their name.
claimed contains claim.metadata.name if {
	is_array(input.request.object.spec.volumeClaimTemplates)
	some claim in input.request.object.spec.volumeClaimTemplates
}

claimed contains claim.metadata.name if {
	is_array(input.request.object.spec.leaderWorkerTemplate.volumeClaimTemplates)
	some claim in input.request.object.spec.leaderWorkerTemplate.volumeClaimTemplates
}

claimed contains claim.metadata.name if {
	is_array(input.request.object.spec.volumeClaimPolicies)
	some policy in input.request.object.spec.volumeClaimPolicies
	is_array(policy.templates)
	some claim in policy.templates
}
