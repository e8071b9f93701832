package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// awaitInstallation waits until the workloads have rolled out, the nodes are ready, and a new pod on each node gets an
// address.
func (i *Installer) awaitInstallation(ctx context.Context, inv *inventory) error {
	for _, w := range inv.Wait {
		i.Say("waiting until %s has rolled out", w)
		if err := i.awaitRollout(ctx, w); err != nil {
			return err
		}
	}
	i.Say("waiting until the nodes are ready")
	if err := i.pollUntil(ctx, "all nodes are ready", i.unreadyNodes); err != nil {
		return err
	}
	i.Say("waiting until new pods get addresses")
	return i.awaitPodAddresses(ctx)
}

// awaitRollout waits until all pods of a workload are ready and are made from its current template. workload has the form
// "DaemonSet namespace/name". Any other kind is taken for a Deployment.
func (i *Installer) awaitRollout(ctx context.Context, workload string) error {
	kind, path, _ := strings.Cut(workload, " ")
	namespace, name, _ := strings.Cut(path, "/")
	return i.pollUntil(ctx, workload+" has rolled out", func(ctx context.Context) (string, error) {
		var generation, observed int64
		var want, updated, ready int32
		switch kind {
		case "DaemonSet":
			d, err := i.client.DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			generation, observed = d.Generation, d.Status.ObservedGeneration
			want, updated, ready = d.Status.DesiredNumberScheduled, d.Status.UpdatedNumberScheduled, d.Status.NumberReady
		default:
			d, err := i.client.Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			generation, observed, want = d.Generation, d.Status.ObservedGeneration, 1
			if d.Spec.Replicas != nil {
				want = *d.Spec.Replicas
			}
			updated, ready = d.Status.UpdatedReplicas, d.Status.ReadyReplicas
		}
		if observed < generation {
			return "its controller has not seen it", nil
		}
		if updated < want || ready < want || want == 0 {
			return fmt.Sprintf("%d of %d pods are ready, %d are of its newest form%s", ready, want, updated, i.waitingReasons(ctx, namespace)), nil
		}
		return "", nil
	})
}

// waitingReasons returns "; " and up to three reasons why containers in a namespace do not run. It returns "" if it finds no
// reason.
func (i *Installer) waitingReasons(ctx context.Context, namespace string) string {
	pods, err := i.client.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var list []string
	for _, p := range pods.Items {
		for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
			if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
				words := w.Message
				if t := s.LastTerminationState.Terminated; t != nil { // the message of the ended container has more detail
					words = cmp.Or(strings.TrimSpace(t.Message), words)
				}
				list = append(list, strings.TrimSpace(fmt.Sprintf("%s: %s %s", p.Name, w.Reason, words)))
			}
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return ""
	}
	return "; " + strings.Join(slices.Compact(list[:min(len(list), 3)]), "; ")
}

// unreadyNodes lists the nodes that are not ready, "" if all are.
func (i *Installer) unreadyNodes(ctx context.Context) (string, error) {
	nodes, err := i.client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var list []string
	for _, n := range nodes.Items {
		if api.Unready(n) != "" {
			list = append(list, n.Name)
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	return "not ready: " + strings.Join(list, ", "), nil
}

const (
	probeName = "cnibench-attach-"
	// detachLimit bounds the removal of the probe pods.
	detachLimit = time.Minute
)

// awaitPodAddresses creates a pod on each node that takes pods, waits until each pod has an address, and removes the pods. The
// kubelet never pulls their image, and the image need not exist: a pod gets its address before its containers start. A pull
// would delay the kubelet's report.
func (i *Installer) awaitPodAddresses(ctx context.Context) (err error) {
	nodes, err := i.client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods := i.client.Pods(metav1.NamespaceDefault)
	var made []string
	defer func() { err = errors.Join(err, i.removeProbes(context.WithoutCancel(ctx), made)) }()
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable || api.Unready(n) != "" {
			continue
		}
		p, err := pods.Create(ctx, i.probePod(n.Name), metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return fmt.Errorf("create a probe pod on node %s: %w", n.Name, err)
		}
		made = append(made, p.Name)
	}
	_, err = api.Await{
		Names: made, Done: func(p *corev1.Pod, _ api.State) bool { return p.Status.PodIP != "" },
		List: func(ctx context.Context) (map[string]*corev1.Pod, error) {
			return api.ListPods(ctx, i.client, metav1.NamespaceDefault, api.LabelManagedBy+"="+api.ManagedBy)
		},
		Interval: pause, Limit: i.Timeout, Patience: i.Timeout,
	}.Pods(ctx)
	var late *api.LateError
	if errors.As(err, &late) {
		if warned := api.LastWarning(ctx, i.client, metav1.NamespaceDefault, late.Pod); warned != "" {
			return fmt.Errorf("%w: %s", err, warned)
		}
	}
	return err
}

// removeProbes deletes pods and waits, at most detachLimit, until they are gone: the CNI must still run while the runtime
// detaches them.
func (i *Installer) removeProbes(ctx context.Context, names []string) error {
	ctx, stop := context.WithTimeout(ctx, detachLimit)
	defer stop()
	pods := i.client.Pods(metav1.NamespaceDefault)
	var errs []error
	for _, name := range names {
		if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, name := range names {
		errs = append(errs, i.awaitRemoval(ctx, "pod "+name, func(ctx context.Context) (metav1.Object, error) { return pods.Get(ctx, name, metav1.GetOptions{}) }))
	}
	return errors.Join(errs...)
}

// defaultImage is the image of probe pods if Options has none.
const defaultImage = "registry.k8s.io/pause:3.10"

func (o Options) imageOrDefault() string { return cmp.Or(o.Image, defaultImage) }

// probePod returns a pod to create on a node, to see whether it gets an address.
func (i *Installer) probePod(node string) *corev1.Pod {
	p := api.Restricted(metav1.ObjectMeta{GenerateName: probeName, Labels: api.Owned()}, node, corev1.Container{Name: "attach", Image: i.imageOrDefault()})
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	return p
}

// patchProxy patches the DaemonSet kube-proxy.
func (i *Installer) patchProxy(ctx context.Context, patch string) error {
	_, err := i.client.DaemonSets(proxyNamespace).Patch(ctx, proxyName, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager})
	return err
}
