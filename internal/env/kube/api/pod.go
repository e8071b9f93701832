package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// User is the uid and gid of unprivileged pods.
const User = 65532

// Restricted returns a pod that runs c on a node. The strictest PodSecurity level admits it. The caller may change the pod.
func Restricted(meta metav1.ObjectMeta, node string, c corev1.Container) *corev1.Pod {
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError // the runtime says "exec format error" there alone
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Privileged: new(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)), // with 0 the object would be removed before the pod has ended
		EnableServiceLinks: new(false), AutomountServiceAccountToken: new(false), Affinity: On(node),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(User)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{c},
	}}
}

// ListPods returns the pods of a namespace that the label selector selects, by name. The selector "" selects all.
func ListPods(ctx context.Context, client *Client, namespace, selector string) (map[string]*corev1.Pod, error) {
	list, err := client.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// Addresses returns the IP addresses of a pod, in the cluster's order of families.
func Addresses(p *corev1.Pod) []string {
	all := each.Of(p.Status.PodIPs, func(ip corev1.PodIP) string { return ip.IP })
	if len(all) == 0 && p.Status.PodIP != "" {
		return []string{p.Status.PodIP}
	}
	return all
}

// NodeAddresses returns the internal IP addresses of a node, in the cluster's order of families.
func NodeAddresses(n corev1.Node) (all []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			all = append(all, a.Address)
		}
	}
	return all
}

// UnderlayFamily returns the family of the addresses between nodes with these internal addresses: 6 if there is none of
// IPv4, otherwise 4.
func UnderlayFamily(addresses []string) int {
	if PickFamily(addresses, 4) == "" && PickFamily(addresses, 6) != "" {
		return 6
	}
	return 4
}

// PickFamily returns the first address of a family: 4, 6, or 0 for any. It returns "" if there is none.
func PickFamily(addresses []string, family int) string {
	for _, a := range addresses {
		if six := strings.Contains(a, ":"); family == 0 || six == (family == 6) {
			return a
		}
	}
	return ""
}

// Await describes the pods to wait for.
type Await struct {
	Names []string
	// List returns the pods by name. Errors of an API server that is away or busy are tolerated.
	List func(context.Context) (map[string]*corev1.Pod, error)
	// Done reports whether a pod has reached the state to wait for.
	Done func(*corev1.Pod, State) bool
	// Interval is the time between two lists. Limit bounds the whole wait. Patience is how long a pod may have a fault
	// that may pass (State.Patient).
	Interval, Limit, Patience time.Duration
	// Lost is called for each pod that is gone, cannot become done, or is not done within Limit; the wait for the other
	// pods continues. If Lost is nil, the first such pod ends the wait with an error. (optional)
	Lost func(name, why string)
}

// LateError means that pods were not done within Limit.
type LateError struct {
	Limit time.Duration
	// Waiting has the states of these pods, by name.
	Waiting map[string]State
	// Pod is the first of these pods in the order of Await.Names. Node is its node, "" if it was not scheduled.
	Pod, Node string
}

func (e *LateError) Error() string {
	return fmt.Sprintf("waited %s for pod %s: %s", e.Limit, e.Pod, e.reason())
}

func (e *LateError) reason() string {
	idle := "it was not scheduled"
	if e.Node != "" {
		idle = "node " + e.Node + " has not started it"
	}
	return cmp.Or(e.Waiting[e.Pod].Why, idle)
}

// Pods waits until the pods in Names are done, and returns all listed pods by name. It fails with a *LateError after Limit,
// and earlier if a pod is gone or cannot become done. If Lost is set, it calls Lost for such pods instead of failing.
func (a Await) Pods(ctx context.Context) (map[string]*corev1.Pod, error) {
	since, lost := map[string]time.Time{}, map[string]bool{}
	var pods map[string]*corev1.Pod
	late := &LateError{Limit: a.Limit}
	err := wait.PollUntilContextTimeout(ctx, a.Interval, a.Limit, true, func(ctx context.Context) (bool, error) {
		listed, err := a.List(ctx)
		if err != nil {
			if Passing(err) {
				err = nil
			}
			return false, err
		}
		pods, late.Waiting, late.Pod = listed, map[string]State{}, ""
		for _, name := range a.Names {
			if lost[name] {
				continue
			}
			now, done, err := a.podState(name, pods[name], since)
			switch {
			case err != nil && a.Lost == nil:
				return false, err
			case err != nil:
				lost[name] = true
				a.Lost(name, err.Error())
			case !done:
				if late.Waiting[name] = now; late.Pod == "" {
					late.Pod, late.Node = name, pods[name].Spec.NodeName
				}
			}
		}
		return late.Pod == "", nil
	})
	if err != nil && wait.Interrupted(err) && late.Pod != "" {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("pod %s: %s: %w", late.Pod, late.reason(), context.Cause(ctx))
		}
		if a.Lost == nil {
			return nil, late
		}
		for name, now := range late.Waiting {
			a.Lost(name, fmt.Sprintf("pod %s is not ready after %s: %s", name, a.Limit, cmp.Or(now.Why, "nothing is known of it")))
		}
		err = nil
	}
	return pods, err
}

// podState returns the state of a pod and whether it is done. It fails if the pod cannot become done. While the pod has a
// fault that may pass (State.Patient), podState keeps the time at which the fault began in since.
func (a Await) podState(name string, p *corev1.Pod, since map[string]time.Time) (now State, done bool, err error) {
	if p == nil {
		return now, false, fmt.Errorf("pod %s is gone: it was deleted", name)
	}
	now = StateOf(p)
	if a.Done(p, now) {
		return now, true, nil
	}
	if !now.Patient {
		delete(since, name)
	} else if since[name].IsZero() {
		since[name] = time.Now()
	}
	if now.Hopeless || now.Patient && time.Since(since[name]) > a.Patience {
		return now, false, advice.With(fmt.Errorf("pod %s on node %s: %s", name, nodeOf(p), now.Why), now.Advice)
	}
	return now, false, nil
}

// nodeOf returns the node that a pod runs on. If the pod is not scheduled, it returns the node that the pod's affinity
// requires.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// Passing reports whether err may be temporary: the API server did not answer, failed internally, or is busy. A caller
// must check first whether its own context has ended.
func Passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer of an API server
	}
	code := status.Status().Code
	return code >= 500 || code == 429
}

// State is the summary of a pod's status.
type State struct {
	// Running means that a container runs, Ready that the pod's condition Ready is true.
	Running, Ready bool
	// Why is what keeps the pod from being ready, in the cluster's words; "" if unknown.
	Why string
	// Hopeless means that the pod cannot become ready. Patient means that it has a fault that may pass.
	Hopeless, Patient bool
	// Ended means that a container has ended, Failed that it ended with an error. The pod's phase may change later.
	Ended, Failed bool
	// Advice is what the user can do about the fault, "" if unknown.
	Advice string
}

// Advice for pods that do not start.
const (
	AdviceImage    = "cnibench image --load or --push brings the image to the cluster; --image names it, --pull-secrets authorizes a pull"
	AdviceSchedule = "free the node, name others by --client-node and --server-node, or lower --cpu-request and --memory-request"
)

// StateOf summarizes the status of a pod. A pod that is being deleted or has ended is Hopeless.
func StateOf(p *corev1.Pod) State {
	over := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	switch {
	case p.DeletionTimestamp != nil && (!over || p.Status.Reason == ""): // the end of its container is the end of the pod
		return State{Hopeless: true, Why: "it is being deleted"}
	case over:
		return State{Hopeless: true, Ended: true, Failed: p.Status.Phase == corev1.PodFailed, Why: podEndText(p)}
	}
	var s State
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil || c.State.Waiting != nil {
			return containerState(c)
		}
		s.Running = s.Running || c.State.Running != nil
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			s.Ready = true
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return State{Patient: true, Why: "it cannot be scheduled: " + c.Message, Advice: AdviceSchedule}
		}
	}
	return s
}

// containerState returns the state of a pod whose container c waits or has ended.
func containerState(c corev1.ContainerStatus) State {
	if t := c.State.Terminated; t != nil {
		return State{Hopeless: true, Ended: true, Failed: t.ExitCode != 0, Why: containerEndText(t)}
	}
	w := c.State.Waiting
	why := strings.TrimSpace(w.Reason + ": " + w.Message)
	switch w.Reason {
	case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		return State{Hopeless: true, Why: "its image " + c.Image + " cannot be pulled: " + why, Advice: AdviceImage}
	case "ErrImagePull":
		return State{Patient: true, Why: "its image " + c.Image + " cannot be pulled: " + why, Advice: AdviceImage}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return State{Patient: true, Why: why}
	}
	if w.Message == "" { // every pod passes through ContainerCreating
		why = ""
	}
	return State{Why: why}
}

// podEndText describes how a pod ended, with the exit codes and messages of its containers.
func podEndText(p *corev1.Pod) string {
	var parts []string
	if p.Status.Reason != "" || p.Status.Message != "" {
		parts = append(parts, strings.Trim(p.Status.Reason+": "+p.Status.Message, ": "))
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			parts = append(parts, containerEndText(t))
		}
	}
	if len(parts) == 0 {
		return "it ended as " + strings.ToLower(string(p.Status.Phase))
	}
	return "it ended: " + strings.Join(parts, "; ")
}

func containerEndText(t *corev1.ContainerStateTerminated) string {
	s := fmt.Sprintf("its container ended with code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		s += " (" + t.Reason + ")"
	}
	if t.Message != "" {
		s += ": " + strings.TrimSpace(t.Message)
	}
	return s
}

// LastWarning returns the reason and the message of the last warning event of a pod or a Service. It returns "" if there is
// no such event, or if the events cannot be read.
func LastWarning(ctx context.Context, client *Client, namespace, name string) string {
	list, err := client.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String()})
	if err != nil {
		return "" // an optional right
	}
	var last *corev1.Event
	for i, e := range list.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Name == name && (last == nil || last.LastTimestamp.Before(&e.LastTimestamp)) {
			last = &list.Items[i]
		}
	}
	if last == nil {
		return ""
	}
	return last.Reason + ": " + last.Message
}

// Unready returns a text that says why a node is not ready, to append to the node's name. It returns "" if the node is
// ready.
func Unready(n corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "is not ready: " + strings.TrimSpace(c.Reason+" "+c.Message)
		} else if c.Type == corev1.NodeReady {
			return ""
		}
	}
	return "has not said whether it is ready"
}

// Labels and annotations.
const (
	// LabelManagedBy has the value ManagedBy on every object that cnibench creates.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "cnibench"
	// LabelRun has the id of the run that created the object. kube clean uses it to find namespaces.
	LabelRun = "cnibench.dev/run"
	// AnnotationExpires has the time from which the object may be removed, in the format of RFC 3339.
	AnnotationExpires = "cnibench.dev/expires"
)

// Labels returns the labels of an object that belongs to a run, in a new map on each call.
func Labels(run string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelRun: run}
}

// Owned returns the labels of an object that belongs to no run, in a new map on each call.
func Owned() map[string]string { return map[string]string{LabelManagedBy: ManagedBy} }

// Until returns the annotations of an object that may be removed at t or later.
func Until(t time.Time) map[string]string {
	return map[string]string{AnnotationExpires: t.UTC().Format(time.RFC3339)}
}

// On returns the affinity of a pod that must run on node. Unlike with nodeName, the scheduler checks the node, and reports if
// it has no room for the pod.
func On(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
}
