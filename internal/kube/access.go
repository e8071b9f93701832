package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/hint"
)

// Right is one verb on one kind of object, and what it is needed for.
type Right struct {
	// Group is the API group, "" for the core.
	Group, Resource, Subresource, Verb string
	// Namespaced says that it is needed in the run's own namespaces, and not for the cluster.
	Namespaced bool
	Why        string
	// Optional rights make messages better; nothing fails without them.
	Optional bool
}

// String is how kubectl auth can-i asks for it: "create pods/exec".
func (r Right) String() string { return r.Verb + " " + r.object() }

func (r Right) object() string {
	s := r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	return s
}

// Rights are all that a run needs on a cluster, in order, and the optional ones. deploy/rbac.yaml grants exactly these.
var Rights = []Right{
	{Resource: "namespaces", Verb: "create", Why: "each run has namespaces of its own"},
	{Resource: "namespaces", Verb: "get", Why: "to see that they are gone when the run ends, or why not"},
	{Resource: "namespaces", Verb: "list", Why: "kube clean finds what killed runs left"},
	{Resource: "namespaces", Verb: "delete", Why: "the run removes what it made"},
	{Resource: "nodes", Verb: "list", Why: "to choose the nodes of the two ends and to record what they are"},
	{Resource: "pods", Verb: "create", Namespaced: true, Why: "the ends of the paths"},
	{Resource: "pods", Verb: "get", Namespaced: true, Why: "to say why an agent has gone"},
	{Resource: "pods", Verb: "list", Namespaced: true, Why: "to wait until they run"},
	{Resource: "pods", Subresource: "exec", Verb: "create", Namespaced: true, Why: "to start agents"},
	{Resource: "pods", Subresource: "exec", Verb: "get", Namespaced: true, Why: "the same over a WebSocket"},
	{Resource: "services", Verb: "create", Namespaced: true, Why: "paths to a Service, a NodePort or the pod itself"},
	{Resource: "pods", Subresource: "portforward", Verb: "create", Namespaced: true, Optional: true, Why: "to reach agents where exec is refused"},
	{Resource: "pods", Subresource: "portforward", Verb: "get", Namespaced: true, Optional: true, Why: "the same over a WebSocket"},
	{Resource: "events", Verb: "list", Namespaced: true, Optional: true, Why: "to say why a pod does not start"},
	{Group: "networking.k8s.io", Resource: "networkpolicies", Verb: "list", Namespaced: true, Optional: true, Why: "to name the policy that blocks a path"},
}

// pullRights are needed besides where images are pulled with Secrets.
var pullRights = []Right{
	{Resource: "secrets", Verb: "create", Namespaced: true, Why: "the copy of an image pull Secret in the run's namespace"},
}

// rights returns what these options need, without the optional ones.
func (o Options) rights() []Right {
	var need []Right
	for _, r := range Rights {
		if !r.Optional {
			need = append(need, r)
		}
	}
	if len(o.PullSecrets) > 0 {
		need = append(need, pullRights...)
	}
	return need
}

// AdviceAccess is how to get past missing rights.
const AdviceAccess = "somebody who may grant them can: cnibench kube access --manifest | kubectl apply -f -, and bind the role"

// AccessError lists the rights that are missing.
type AccessError struct{ Missing []Right }

func (e *AccessError) Error() string {
	lines := []string{fmt.Sprintf("%d rights are missing on this cluster:", len(e.Missing))}
	if len(e.Missing) == 1 {
		lines[0] = "a right is missing on this cluster:"
	}
	for _, r := range e.Missing {
		lines = append(lines, fmt.Sprintf("  %-24s %s", r, r.Why))
	}
	return strings.Join(lines, "\n")
}

// Preflight asks the API server for every right that the run needs, before anything is made. The error is an
// *AccessError that lists all that are missing.
func (c *Cluster) Preflight(ctx context.Context) error {
	missing, err := c.Missing(ctx, c.options.rights())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return hint.With(&AccessError{missing}, AdviceAccess)
	}
	return nil
}

// Missing returns those of rights that the API server does not allow, in their order.
func (c *Cluster) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	var missing []Right
	for _, r := range rights {
		ask := &authorizationv1.ResourceAttributes{Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Verb: r.Verb}
		if r.Namespaced {
			ask.Namespace = c.namespace()
		}
		answer, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: ask}}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask the API server for the right to %s: %w", r, cause(ctx, err))
		}
		if !answer.Status.Allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// cause prefers the reason why ctx ended over what it made of a request.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// Manifest returns a ClusterRole with Rights, optional ones included, as YAML. Everything namespaced is in it too: the
// run makes its namespaces itself, so that no Role can wait in them.
func Manifest() []byte {
	var b bytes.Buffer
	b.WriteString("# The rights that cnibench needs to measure on a cluster, each with its reason.\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cnibench\nrules:\n")
	for _, object := range objects(Rights) {
		var verbs, lines []string
		var first Right
		for _, r := range Rights {
			if r.object() != object {
				continue
			}
			first = r
			verbs = append(verbs, r.Verb)
			why := r.Why
			if r.Optional {
				why += " (optional)"
			}
			lines = append(lines, fmt.Sprintf("  # %s: %s\n", r.Verb, why))
		}
		b.WriteString(strings.Join(lines, ""))
		resource := first.Resource
		if first.Subresource != "" {
			resource += "/" + first.Subresource
		}
		fmt.Fprintf(&b, "  - apiGroups: [%q]\n    resources: [%q]\n    verbs: [%s]\n", first.Group, resource, strings.Join(verbs, ", "))
	}
	return b.Bytes()
}

// objects returns the kinds of object of rights, each once, in order.
func objects(rights []Right) []string {
	var all []string
	for _, r := range rights {
		if !slices.Contains(all, r.object()) {
			all = append(all, r.object())
		}
	}
	return all
}
