package recipe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Leftovers is the command of cnibench that prints a residue.Node in JSON. It inspects the node whose root is mounted at
// hostRoot.
const (
	Leftovers = "leftovers"
	hostRoot  = "/host"
)

const (
	// lookLimit bounds the inspection of all nodes, and the removal of the pods' namespace.
	lookLimit = 2 * time.Minute
	// waitsAtOnce bounds how many pods are waited for at once.
	waitsAtOnce = 16
	// lookPatience bounds how long a pod may have a fault that may pass, such as a failed image pull.
	lookPatience = 5 * time.Second
	// sweepLimit bounds the time in which leftovers are removed again, with sweepPause between two removals.
	sweepLimit = 2 * time.Minute
	sweepPause = 5 * time.Second
	// lookTTL is the time after which the pods' namespace may be removed.
	lookTTL = time.Hour
)

// inspectNodes inspects nodes from a privileged host-network pod on each, and returns the observations by the node's name.
// If a pod fails, the reason is in Unseen of its node.
func (i *Installer) inspectNodes(ctx context.Context, nodes []corev1.Node) (map[string]residue.Node, error) {
	pods, found := map[string]*corev1.Pod{}, map[string]residue.Node{}
	for _, n := range nodes {
		if why := silentReason(n); why != "" {
			found[n.Name] = residue.Node{Unseen: []string{"the node itself was not inspected: " + why}}
			continue
		}
		pods[n.Name] = i.nodePod(n.Name, true)
	}
	said, err := i.runNodePods(ctx, pods)
	if err != nil {
		return nil, err
	}
	for node, s := range said {
		var seen residue.Node
		if s.err == nil {
			s.err = json.Unmarshal(s.text, &seen)
		}
		if s.err != nil {
			seen = residue.Node{Unseen: []string{"the node itself was not inspected: " + s.err.Error()}}
		}
		found[node] = seen
	}
	return found, nil
}

// silentReason returns why no pod of ours would run on a node, "" if one may. A node without a CNI is not ready, and runs pods
// of the host's network.
func silentReason(n corev1.Node) string {
	if os := n.Labels[corev1.LabelOSStable]; os != "" && os != "linux" {
		return "it runs " + os
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return "its kubelet does not answer"
		}
	}
	return ""
}

// Sweep removes leftovers, and surveys the cluster again until their owners have left nothing: a runtime that removes the
// sandboxes of earlier pods calls the plugin of a CNI that was uninstalled, which writes its log. The error lists what could
// not be removed, or what was still there after sweepLimit.
func (i *Installer) Sweep(ctx context.Context, left []residue.Leftover) error {
	if len(left) == 0 {
		return nil
	}
	there := left
	err := wait.PollUntilContextTimeout(ctx, sweepPause, sweepLimit, true, func(context.Context) (bool, error) {
		if err := i.sweepOnce(ctx, there); err != nil {
			return false, err
		}
		s, err := i.Survey(ctx)
		there = slices.DeleteFunc(s.Left, func(l residue.Leftover) bool {
			return !slices.ContainsFunc(left, func(m residue.Leftover) bool { return m.Owner == l.Owner })
		})
		return len(there) == 0, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("removed for %s, and still there: %s", sweepLimit, strings.Join(each.Of(there, residue.Leftover.String), "; "))
	}
	return err
}

// sweepOnce removes annotations, taints and definitions through the API. For all others it runs their commands Remove in a
// privileged pod on their node.
func (i *Installer) sweepOnce(ctx context.Context, left []residue.Leftover) error {
	var errs []error
	commands := map[string][]string{}
	for _, l := range left {
		var err error
		switch l.Kind {
		case "definition":
			i.Say("removing %s", l)
			err = i.dynamic.Resource(definitionsAt).Delete(ctx, l.Name, metav1.DeleteOptions{})
		case "annotation", "taint":
			i.Say("removing %s", l)
			err = i.removeFromNode(ctx, l)
		default:
			i.Say("%s: %s", l.Node, l.Remove)
			commands[l.Node] = append(commands[l.Node], l.Remove)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("%s: %w", l, err))
		}
	}
	pods := map[string]*corev1.Pod{}
	for node, list := range commands {
		p := i.nodePod(node, false)
		for _, c := range list {
			p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, "--run", c)
		}
		pods[node] = p
	}
	if len(pods) == 0 {
		return errors.Join(errs...)
	}
	said, err := i.runNodePods(ctx, pods)
	errs = append(errs, err)
	for node, s := range said {
		if s.err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", node, s.err))
		}
	}
	return errors.Join(errs...)
}

// removeFromNode removes the annotations or the taint of a leftover from its node.
func (i *Installer) removeFromNode(ctx context.Context, l residue.Leftover) error {
	nodes := i.client.Nodes()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(ctx, l.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if l.Kind == "taint" {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == l.Name })
		} else {
			maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, strings.TrimSuffix(l.Name, "*")) })
		}
		_, err = nodes.Update(ctx, n, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
}

// said is the output of a pod, or why it failed.
type said struct {
	text []byte
	err  error
}

// runNodePods runs pods, one for each node, in a temporary namespace, and returns their outputs by node. It waits until all
// have ended and removes the namespace.
func (i *Installer) runNodePods(ctx context.Context, pods map[string]*corev1.Pod) (out map[string]said, err error) {
	ctx, stop := context.WithTimeout(ctx, lookLimit)
	defer stop()
	wanted := api.Namespace(metav1.ObjectMeta{
		GenerateName: "cnibench-look-", Labels: api.Labels("look"), Annotations: api.Until(time.Now().Add(lookTTL)),
	}, "privileged")
	namespace, err := i.client.Namespaces().Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("create a namespace for pods on the nodes: %w", err)
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
		defer stop()
		err = cmp.Or(err, api.RemoveNamespace(ctx, i.client, namespace.Name, pause))
	}()
	like := metav1.ObjectMeta{Namespace: namespace.Name, Labels: api.Owned()}
	if err := api.CopySecrets(ctx, i.client, i.PullSecrets, like); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for node, p := range pods {
		p.Spec.ImagePullSecrets = api.Pulling(i.PullSecrets)
		made, err := i.client.Pods(namespace.Name).Create(ctx, p, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return nil, fmt.Errorf("a pod on node %s: %w", node, err)
		}
		names[node] = made.Name
	}
	// One that does not end must not take the time of the others.
	nodes := slices.Sorted(maps.Keys(names))
	outputs := make([]said, len(nodes))
	each.AtMost(waitsAtOnce, nodes, func(at int, node string) {
		text, err := i.awaitOutput(ctx, namespace.Name, names[node])
		outputs[at] = said{text, err}
	})
	out = map[string]said{}
	for at, node := range nodes {
		out[node] = outputs[at]
	}
	return out, nil
}

// awaitOutput waits until a pod has ended and returns its output. If the pod failed, the error has the end of the output.
func (i *Installer) awaitOutput(ctx context.Context, namespace, pod string) ([]byte, error) {
	pods, err := api.Await{
		Names: []string{pod}, Interval: pause, Limit: lookLimit, Patience: lookPatience,
		Done: func(_ *corev1.Pod, s api.State) bool { return s.Ended },
		List: func(ctx context.Context) (map[string]*corev1.Pod, error) {
			return api.ListPods(ctx, i.client, namespace, "")
		},
	}.Pods(ctx)
	if err != nil {
		return nil, err
	}
	text, err := i.client.Logs(ctx, namespace, pod)
	if err == nil && api.StateOf(pods[pod]).Failed {
		err = fmt.Errorf("its pod failed: %s", strings.TrimSpace(string(text[max(0, len(text)-1000):])))
	}
	return text, err
}

// nodePod returns a privileged host-network pod that runs the command Leftovers. It has the node's root mounted; if readOnly
// is false, it may change the node's files and mounts.
func (i *Installer) nodePod(node string, readOnly bool) *corev1.Pod {
	mounts := corev1.MountPropagationHostToContainer
	if !readOnly { // an unmount in the pod applies to the node
		mounts = corev1.MountPropagationBidirectional
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-", Labels: api.Owned()},
		Spec: corev1.PodSpec{
			Affinity: api.On(node), HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			TerminationGracePeriodSeconds: new(int64(0)), ActiveDeadlineSeconds: new(int64(lookLimit.Seconds())),
			Volumes: []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}},
			Containers: []corev1.Container{{
				Name: "node", Image: i.imageOrDefault(), Command: []string{"/cnibench", Leftovers, "--root", hostRoot},
				SecurityContext: &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))},
				VolumeMounts:    []corev1.VolumeMount{{Name: "root", MountPath: hostRoot, ReadOnly: readOnly, MountPropagation: &mounts}},
			}},
		},
	}
}
