package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/conduct/control"
)

// rolled ends the names of Services whose backends are rolled. They have the pods of those that are not, and no trial but
// those of the rolled workload goes over them: what a node has not heard of yet when it ends spoils no other.
const rolled = "-rolled"

// Roll takes a backend out of its Service, or puts it back, by the label that the Service selects: the pod, and with it the
// agent, lives on. It returns when the API server has taken it; controllers and nodes learn of it in their own time, which
// is what is measured.
func (c *Cluster) Roll(ctx context.Context, b control.Backend, in bool) error {
	e, why := c.place.ends(c.options, b.Route)
	if why == "" && b.Index >= len(e.servers) {
		why = fmt.Sprintf("it has no backend %d", b.Index+1)
	}
	if why != "" {
		return fmt.Errorf("%s: %s", b.Route, why)
	}
	pod := e.servers[b.Index]
	var label any // null takes the label away
	if in {
		label = isBehind
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{labelBehind + e.service: label}}})
	if err != nil {
		return err
	}
	_, err = c.client.Pods(c.namespace(isHostPod(pod))).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change the labels of pod %s: %w", pod, withAdvice(cause(ctx, err)))
	}
	return nil
}
