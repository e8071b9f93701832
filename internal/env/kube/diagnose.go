package kube

import (
	"cmp"
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Advice for requests that a cluster refuses.
const (
	adviceQuota   = "a quota limits the run's namespace: ask for an exception, or lower --cpu-request and --memory-request"
	adviceLimits  = "the quota requires limits: create a LimitRange with default limits beside it. For limits.cpu alone, use --cpu-limit, which throttles what is measured"
	adviceRange   = "a LimitRange bounds the requests of pods: change --cpu-request, --memory-request or --cpu-limit, or ask for an exception. Its defaults must set the memory limit"
	adviceSCC     = "OpenShift requires a security context constraint: oc adm policy add-scc-to-user nonroot-v2 USER, with the user that runs cnibench. It admits non-root pods without capabilities"
	adviceSCCHost = "OpenShift requires a security context constraint. hostnetwork-v2 does not admit the user of host-network pods: oc adm policy add-scc-to-user privileged USER, with the user that runs cnibench; or avoid such pods by --baseline detected and other --paths"
	adviceRights  = "cnibench kube access says which rights are needed and which are missing"
	adviceHost    = "the bare node, and paths from or to a host, need host-network pods: avoid them by --baseline detected and other --paths, or exempt namespaces with the label app.kubernetes.io/managed-by=cnibench from the policy"
	adviceAdmit   = "a policy of this cluster refuses the run's objects: exempt namespaces with the label app.kubernetes.io/managed-by=cnibench"
)

// limitRange matches the message of a LimitRange that refuses a pod. rightsLack matches the message for a missing right.
var (
	limitRange = pattern.New(`(?:minimum|maximum) \S+ usage per \S+ is |max limit to request ratio per `)
	rightsLack = pattern.New(`cannot \S+ resource "`)
)

// withAdvice adds the matching advice to an error of the API server. If no advice matches, it returns err unchanged.
func withAdvice(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "failed quota") && strings.Contains(text, "must specify"):
		return advice.With(err, adviceLimits)
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "failed quota"):
		return advice.With(err, adviceQuota)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return advice.With(err, "something deletes the run's new namespace: do not delete it during the run")
	case strings.Contains(text, "violates PodSecurity"), strings.Contains(text, "admission webhook"),
		strings.Contains(text, "ValidatingAdmissionPolicy"), strings.Contains(text, "denied the request"):
		return advice.With(err, adviceAdmit)
	case strings.Contains(text, "unable to validate against any security context constraint"):
		return advice.With(err, adviceSCC)
	case apierrors.IsForbidden(err) && limitRange.MatchString(text):
		return advice.With(err, adviceRange)
	case apierrors.IsForbidden(err) && rightsLack.MatchString(text): // other refusals explain themselves
		return advice.With(err, adviceRights)
	case apierrors.IsUnauthorized(err):
		return advice.With(err, "the credentials of the kubeconfig are not accepted any more: log in again")
	}
	return err
}

// withHostAdvice adds advice as withAdvice does, for the error of a host-network pod or its namespace. If a policy refuses
// the pod or the namespace, the advice also tells how to run without host-network pods.
func withHostAdvice(err error) error {
	err = withAdvice(err)
	switch advice.Of(err) {
	case adviceAdmit:
		return advice.With(err, adviceHost)
	case adviceSCC:
		return advice.With(err, adviceSCCHost)
	}
	return err
}

// withPodAdvice adds advice to the error of the pod called name. It calls withHostAdvice if the pod is a host-network pod
// and the error mentions "host". Otherwise it calls withAdvice.
func withPodAdvice(name string, err error) error {
	if isHostPod(name) && err != nil && strings.Contains(strings.ToLower(strings.ReplaceAll(err.Error(), name, "")), "host") {
		return withHostAdvice(err)
	}
	return withAdvice(err)
}

// podFault asks the API server why a pod is not ready and returns the reason. This is the fault of the pod's node, else the
// pod's state, else its last warning event, else its condition Ready. podFault also reports that a pod is gone. It returns
// "" if it finds no fault.
func (c *Cluster) podFault(ctx context.Context, name string) string {
	p, err := c.client.Pods(c.namespace(isHostPod(name))).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return podGoneMessage(name)
	case err != nil:
		return ""
	}
	s := api.StateOf(p)
	// A pod on a node that is not ready is not ready either, and is evicted in the end.
	node := c.nodeFault(ctx, p)
	switch {
	case node != "" && s.Hopeless:
		return "pod " + name + " on node " + p.Spec.NodeName + ": " + s.Why + "; " + node
	case node != "" || s.Ready:
		return node
	}
	why := cmp.Or(s.Why, api.LastWarning(ctx, c.client, p.Namespace, p.Name), unreadyReason(p))
	if why == "" {
		return ""
	}
	return "pod " + name + " on node " + p.Spec.NodeName + ": " + why
}

// unreadyReason returns the reason and message of a pod's condition Ready if the condition is not true, or "".
func unreadyReason(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return strings.Trim("it is not ready: "+c.Reason+" "+c.Message, ": ")
		}
	}
	return ""
}

// nodeFault returns why the node of a pod is not ready, "" if it is ready or cannot be read.
func (c *Cluster) nodeFault(ctx context.Context, p *corev1.Pod) string {
	list, err := c.client.Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", p.Spec.NodeName).String()})
	if err != nil {
		return "" // the pod's state has no more information
	}
	for _, n := range list.Items {
		if why := api.Unready(n); n.Name == p.Spec.NodeName && why != "" {
			return "node " + n.Name + " " + why
		}
	}
	return ""
}

// errGone means that an agent was to be started after Close.
var errGone = errors.New("the run has left this cluster")
