// Which taints a toleration tolerates, which tolerations it makes needless,
// and which nodes a Pod may be placed on.

package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/core"
	conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/util/tolerations"
)

// toleratesQuestion asks whether a toleration tolerates a taint.
type toleratesQuestion struct {
	header
	Toleration json.RawMessage `json:"toleration"`
	Taint      json.RawMessage `json:"taint"`
}

func (q *toleratesQuestion) answer() (answer, error) {
	var toleration corev1.Toleration
	if err := decode(q.Toleration, "toleration", &toleration); err != nil {
		return nil, err
	}
	var taint corev1.Taint
	if err := decode(q.Taint, "taint", &taint); err != nil {
		return nil, err
	}
	comparisons := utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators)
	return answer{"tolerates": toleration.ToleratesTaint(klog.Background(), &taint, comparisons)}, nil
}

// coversQuestion asks whether a toleration that is present makes a wanted one
// needless, because it tolerates all that the wanted one would.
type coversQuestion struct {
	header
	Present json.RawMessage `json:"present"`
	Wanted  json.RawMessage `json:"wanted"`
}

func (q *coversQuestion) answer() (answer, error) {
	present, err := internalToleration(q.Present, "present")
	if err != nil {
		return nil, err
	}
	wanted, err := internalToleration(q.Wanted, "wanted")
	if err != nil {
		return nil, err
	}
	// With one toleration on each side this is exactly the unexported
	// comparison by which Kubernetes merges tolerations. MergeTolerations
	// itself would not do: of two that cover each other it keeps either.
	covered := tolerations.VerifyAgainstWhitelist([]core.Toleration{wanted}, []core.Toleration{present})
	return answer{"covers": covered}, nil
}

func internalToleration(raw json.RawMessage, what string) (core.Toleration, error) {
	var read corev1.Toleration
	var converted core.Toleration
	if err := decode(raw, what, &read); err != nil {
		return converted, err
	}
	err := conversion.Convert_v1_Toleration_To_core_Toleration(&read, &converted, nil)
	return converted, err
}

// nodeMatchQuestion asks whether a Pod's nodeSelector and required node
// affinity let it run on a node of this name and these labels.
type nodeMatchQuestion struct {
	header
	Pod  json.RawMessage `json:"pod"`
	Node struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"node"`
}

func (q *nodeMatchQuestion) answer() (answer, error) {
	var pod corev1.Pod
	if err := decode(q.Pod, "pod", &pod); err != nil {
		return nil, err
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: q.Node.Name, Labels: q.Node.Labels}}
	match, err := nodeaffinity.GetRequiredNodeAffinity(&pod).Match(&node)
	response := answer{"match": match}
	if err != nil {
		// An unreadable term does not match, and the scheduler reports it.
		response["error"] = err.Error()
	}
	return response, nil
}
