package slicegate.job_deadline_test

import data.slicegate.job_deadline

day := {"activeDeadlineSeconds": 86400}

group_of := {
	"Job": "batch", "CronJob": "batch", "JobSet": "jobset.x-k8s.io", "PyTorchJob": "kubeflow.org", "RayJob": "ray.io",
	"Workflow": "argoproj.io", "CronWorkflow": "argoproj.io", "Pod": "", "Deployment": "apps", "Notebook": "kubeflow.org",
}

created(kind, spec, path) := {
	"request": {"kind": {"group": group_of[kind], "kind": kind}, "object": {"spec": spec}},
	"slicegate": {"kind": kind, "operation": "CREATE", "workloads": [{"path": path, "pools": ["shared"]}]},
}

findings(kind, spec, path) := found if {
	found := job_deadline.deny with input as created(kind, spec, path)
}

paths(kind, spec, path) := {finding.path | some finding in findings(kind, spec, path)}

test_job_without_a_deadline if {
	findings("Job", {}, "spec.template") == {{
		"msg": "the Job has no deadline, and may hold its shares for ever",
		"path": "spec.activeDeadlineSeconds",
		"fix": "set activeDeadlineSeconds to at most 86400",
	}}
}

test_job_with_a_deadline if {
	count(findings("Job", day, "spec.template")) == 0
}

test_job_with_a_late_deadline if {
	some finding in findings("Job", {"activeDeadlineSeconds": 86401}, "spec.template")
	finding.msg == "the Job may run for 86401 seconds, and 86400 are allowed"
}

test_cronjob if {
	path := "spec.jobTemplate.spec.template"
	paths("CronJob", {}, path) == {"spec.jobTemplate.spec.activeDeadlineSeconds"}
	count(findings("CronJob", {"jobTemplate": {"spec": day}}, path)) == 0
	count(findings("CronJob", day, path)) == 1
}

test_jobset if {
	path := "spec.replicatedJobs[1].template.spec.template"
	paths("JobSet", {}, path) == {"spec.replicatedJobs[1].template.spec.activeDeadlineSeconds"}
	count(findings("JobSet", {"replicatedJobs": [{}, {"template": {"spec": day}}]}, path)) == 0
	count(findings("JobSet", {"replicatedJobs": [{"template": {"spec": day}}, {}]}, path)) == 1
}

test_other_kinds_that_end if {
	worker := "spec.pytorchReplicaSpecs.Worker.template"
	paths("PyTorchJob", {}, worker) == {"spec.runPolicy.activeDeadlineSeconds"}
	count(findings("PyTorchJob", {"runPolicy": day}, worker)) == 0
	group := "spec.rayClusterSpec.workerGroupSpecs[0].template"
	paths("RayJob", {}, group) == {"spec.activeDeadlineSeconds"}
	count(findings("RayJob", day, group)) == 0
	count(findings("Workflow", day, "spec.templates[0]")) == 0
	paths("CronWorkflow", {}, "spec.workflowSpec.templates[0]") == {"spec.workflowSpec.activeDeadlineSeconds"}
	count(findings("CronWorkflow", {"workflowSpec": day}, "spec.workflowSpec.templates[0]")) == 0
}

test_kinds_without_an_end if {
	count(findings("Pod", {}, "")) == 0
	count(findings("Deployment", {}, "spec.template")) == 0
	count(findings("Notebook", {}, "spec.template")) == 0
}

test_outside_of_the_pools if {
	job := created("Job", {}, "spec.template")
	outside := {"slicegate": {"workloads": [{"path": "spec.template", "pools": []}]}}
	count(job_deadline.deny) == 0 with input as object.union(job, outside)
	count(job_deadline.deny) == 0 with input as object.union(job, {"parameters": {"pools": ["other"]}})
}

test_parameters if {
	job := created("Job", {"activeDeadlineSeconds": 7200}, "spec.template")
	count(job_deadline.deny) == 1 with input as object.union(job, {"parameters": {"maxSeconds": 3600}})
	count(job_deadline.deny) == 0 with input as object.union(job, {"parameters": {"maxSeconds": 7200}})
	count(job_deadline.deny) == 0 with input as object.union(job, {"parameters": {"maxSeconds": "3600"}})
}

test_other_shapes if {
	every shape in [null, [], "x", {"activeDeadlineSeconds": null}, {"activeDeadlineSeconds": "60"}] {
		count(findings("Job", shape, "spec.template")) == 1
	}
}

update(new, old) := object.union(
	created("Job", new, "spec.template"),
	{"request": {"oldObject": {"spec": old}}, "slicegate": {"operation": "UPDATE"}},
)

test_updates if {
	count(job_deadline.deny) == 0 with input as update({"suspend": false}, {"suspend": true})
	count(job_deadline.deny) == 1 with input as update({}, day)
	count(job_deadline.deny) == 1 with input as update({"template": 1}, {"template": 2})
	count(job_deadline.deny) == 1 with input as update({"activeDeadlineSeconds": 90000}, day)
}
