// How much of a resource the scheduler counts a Pod for.

package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
)

// demandQuestion asks for a Pod's demand of one resource.
type demandQuestion struct {
	header
	Pod      json.RawMessage `json:"pod"`
	Resource string          `json:"resource"`
}

func (q *demandQuestion) answer() (answer, error) {
	var pod corev1.Pod
	if err := decode(q.Pod, "pod", &pod); err != nil {
		return nil, err
	}
	// The scheduler only ever sees Pods that the API server has defaulted,
	// which is where limits become requests.
	defaults.SetObjectDefaults_Pod(&pod)
	requests := resource.PodRequests(&pod, resource.PodResourcesOptions{})
	count := requests[corev1.ResourceName(q.Resource)]
	return answer{"count": plain(count.AsDec())}, nil
}
