package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Right is the right to use one verb on one kind of object.
type Right struct {
	// Group is the API group, "" for the core.
	Group, Resource, Subresource, Verb string
	// Namespaced means that the right is needed only in the run's own namespaces.
	Namespaced bool
	// Namespace and Name identify an object that the run did not create, if the right is for that object only. They are
	// "" if the right is for all objects of the kind.
	Namespace, Name string
	// Why is the purpose of the right.
	Why string
	// Optional means that most runs work without the right. For the runs that require it, see Options.requiresRight.
	Optional bool
}

// String returns the right as arguments of kubectl auth can-i: "create pods/exec", "get secrets/registry -n team".
func (r Right) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Subresource != "" {
		s += "/" + r.Subresource
	}
	if r.Name != "" {
		s += "/" + r.Name + " -n " + r.Namespace
	}
	return s
}

// balancerRight is required for paths through a load balancer, and optional otherwise.
var balancerRight = Right{Resource: "services", Verb: "get", Namespaced: true, Optional: true, Why: "to see the address of a Service of type LoadBalancer: a path to one needs it"}

// rollRight is required for workloads that roll the backends of a Service, and optional otherwise.
var rollRight = Right{Resource: "pods", Verb: "patch", Namespaced: true, Optional: true, Why: "to take backends out of their Service and put them back: a workload with roll needs it"}

// renewRight is required for workloads that make pods, and optional otherwise. Without it, a run keeps the same pods in all
// repetitions.
var renewRight = Right{Resource: "pods", Verb: "delete", Namespaced: true, Optional: true, Why: "to make the run's pods anew between repetitions, so that intervals hold what instances differ by"}

// watchRight is required for workloads that make pods, and optional otherwise.
var watchRight = Right{Resource: "pods", Verb: "watch", Namespaced: true, Optional: true, Why: "to see when new pods are scheduled and end: ttfr needs it"}

// restRight is required for the workload idle. It is not in Rights, because it is far-reaching: its holder may also execute
// commands in every pod of a node, through the node's kubelet.
var restRight = Right{Resource: "nodes", Subresource: "proxy", Verb: "get", Why: "to read what nodes and daemons use at rest, from their kubelets: idle needs it. It also gives access to every pod of a node"}

// Rights are the required and optional rights of a run on a cluster. Rights on the same resource are adjacent. The role
// cnibench in deploy/rbac.yaml grants exactly these.
var Rights = []Right{
	{Resource: "namespaces", Verb: "create", Why: "each run has namespaces of its own"},
	{Resource: "namespaces", Verb: "get", Why: "to see that they are gone when the run ends, or why not"},
	{Resource: "namespaces", Verb: "list", Why: "kube clean finds what killed runs left"},
	{Resource: "namespaces", Verb: "delete", Why: "the run removes what it made"},
	{Resource: "nodes", Verb: "list", Why: "to choose the nodes of the two ends and to record what they are"},
	{Resource: "pods", Verb: "create", Namespaced: true, Why: "the ends of the paths"},
	{Resource: "pods", Verb: "get", Namespaced: true, Why: "to say why an agent has gone"},
	{Resource: "pods", Verb: "list", Namespaced: true, Why: "to wait until they run"},
	renewRight,
	rollRight,
	watchRight,
	{Resource: "pods", Subresource: "exec", Verb: "create", Namespaced: true, Why: "to start agents"},
	{Resource: "pods", Subresource: "exec", Verb: "get", Namespaced: true, Why: "the same over a WebSocket"},
	{Resource: "services", Verb: "create", Namespaced: true, Why: "paths to a Service, a NodePort, a load balancer or the pod itself"},
	balancerRight,
	{Resource: "pods", Subresource: "portforward", Verb: "create", Namespaced: true, Optional: true, Why: "to reach agents where exec is refused"},
	{Resource: "pods", Subresource: "portforward", Verb: "get", Namespaced: true, Optional: true, Why: "the same over a WebSocket"},
	{Resource: "events", Verb: "list", Namespaced: true, Optional: true, Why: "to say why a pod does not start"},
	{Group: "networking.k8s.io", Resource: "networkpolicies", Verb: "list", Namespaced: true, Optional: true, Why: "to name the policy that blocks a path"},
}

// Rights returns a copy of the variable Rights. It adds the rights that the options require for the workload idle and for
// image pull Secrets.
func (c *Cluster) Rights() []Right {
	return append(baseRights(c.options.Rests), pullRights(c.options.PullSecrets, c.home)...)
}

// baseRights returns a copy of Rights, plus restRight if idle is true.
func baseRights(idle bool) []Right {
	all := slices.Clone(Rights)
	if idle {
		all = append(all, restRight)
	}
	return all
}

// requiredRights returns the rights without which this run fails.
func (c *Cluster) requiredRights() []Right {
	return slices.DeleteFunc(c.Rights(), func(r Right) bool { return r.Optional && !c.options.requiresRight(r) })
}

// requiresRight reports whether these options require an optional right.
func (o Options) requiresRight(r Right) bool {
	switch r {
	case balancerRight:
		return slices.ContainsFunc(o.Paths, func(p plan.Path) bool { return p.To == plan.LoadBalancer })
	case rollRight:
		return len(o.Rolled) > 0
	case watchRight, renewRight:
		return o.NewPods
	}
	return false
}

// AdviceAccess returns a text with the command by which an administrator grants missing rights. The command names the
// namespace of each image pull Secret, because the administrator's context may have another default namespace.
func (c *Cluster) AdviceAccess() string {
	flags, role := "", "role"
	all := each.Of(c.PullSecrets(), func(s api.PullSecret) string { return s.Namespace + "/" + s.Name })
	if len(all) > 0 {
		flags, role = " --pull-secrets "+strings.Join(all, ","), "roles"
	}
	if c.options.Rests {
		flags += " --idle"
	}
	return "an administrator grants them: cnibench kube access --manifest" + flags + " | kubectl apply -f -, and binds the " + role
}

// AccessError lists the rights that are missing.
type AccessError struct{ Missing []Right }

func (e *AccessError) Error() string {
	lines := []string{fmt.Sprintf("%d rights are missing on this cluster:", len(e.Missing))}
	if len(e.Missing) == 1 {
		lines[0] = "a right is missing on this cluster:"
	}
	width := 0
	for _, r := range e.Missing {
		width = max(width, len(r.String()))
	}
	for _, r := range e.Missing {
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, r, r.Why))
	}
	return strings.Join(lines, "\n")
}

// Preflight asks the API server whether the user has every right that the run requires. It creates nothing. It fails with an
// *AccessError that lists all missing rights.
func (c *Cluster) Preflight(ctx context.Context) error {
	missing, err := c.Missing(ctx, c.requiredRights())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return advice.With(&AccessError{missing}, c.AdviceAccess())
	}
	return nil
}

// Missing returns those of rights that the API server does not grant. It fails if a right cannot be checked.
func (c *Cluster) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	var missing []Right
	for _, r := range rights {
		ask := &authorizationv1.ResourceAttributes{Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Verb: r.Verb}
		switch {
		case r.Name != "":
			ask.Namespace, ask.Name = r.Namespace, r.Name
		case r.Namespaced:
			ask.Namespace = c.namespace(false)
		}
		answer, err := c.client.Review(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: ask}})
		if err != nil {
			return nil, fmt.Errorf("ask the API server for the right to %s: %w", r, withCause(ctx, err))
		}
		if !answer.Status.Allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// withCause returns err. If ctx has ended, it joins the cause of ctx to err. It returns nil if err is nil.
func withCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// Manifest returns a ClusterRole with all Rights as YAML, and with restRight if idle is true. It also has the namespaced
// rights, because no Role can exist in a run's namespaces beforehand. For each namespace with image pull Secrets it adds
// a Role to read these Secrets.
func Manifest(idle bool, pullSecrets ...string) []byte {
	var b bytes.Buffer
	b.WriteString("# The rights that cnibench needs to measure on a cluster, each with its reason.\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: cnibench\nrules:\n")
	var verbs []string
	all := baseRights(idle)
	for i, r := range all {
		why := r.Why
		if r.Optional {
			why += " (optional)"
		}
		fmt.Fprintf(&b, "  # %s: %s\n", r.Verb, why)
		verbs = append(verbs, r.Verb)
		rule := fmt.Sprintf("  - apiGroups: [%q]\n    resources: [%q]\n", r.Group, path.Join(r.Resource, r.Subresource))
		if i+1 == len(all) || all[i+1].Group != r.Group || all[i+1].Resource != r.Resource || all[i+1].Subresource != r.Subresource {
			fmt.Fprintf(&b, "%s    verbs: [%s]\n", rule, strings.Join(verbs, ", "))
			verbs = nil
		}
	}
	if !idle {
		fmt.Fprintf(&b, "  # Not granted: %s nodes/proxy, %s. Print it with --idle.\n", restRight.Verb, restRight.Why)
	}
	b.Write(pullRules(pullSecrets))
	return b.Bytes()
}
