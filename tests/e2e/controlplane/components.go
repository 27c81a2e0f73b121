//go:build !oracle_only

// The programs of the control plane, each started as its own main function in
// the Kubernetes and etcd repositories starts it. The build tag oracle_only
// leaves them out: then a build takes a fraction of the time, for machines
// where KUBEBUILDER_ASSETS brings these programs.

package main

import (
	"os"

	// CronJobs name time zones, which a machine without its own list must know too.
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"

	// These three register themselves: the JSON log format and the metrics
	// that the real programs expose.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func init() {
	programs["etcd"] = func() { etcdmain.Main(os.Args) }
	// The commands are made only when they are run: making one registers
	// flags and feature gates that the others would trip over.
	programs["kube-apiserver"] = func() { serve(apiserver.NewAPIServerCommand()) }
	programs["kube-controller-manager"] = func() { serve(controllermanager.NewControllerManagerCommand()) }
	programs["kube-scheduler"] = func() { serve(scheduler.NewSchedulerCommand()) }
	programs["kubectl"] = runKubectl
}

func serve(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func runKubectl() {
	// Verbosity has to be known before the command is made, since making it
	// already reads files and logs.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
