package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// defaultSettle bounds the wait until the nodes serve new Services: kube-proxy took up to 75 s on a busy machine.
	defaultSettle = 90 * time.Second
	// hangUpLimit is how long a program that runs Answer may take to end after its input was closed. Then its stream is
	// cut.
	hangUpLimit = 5 * time.Second
	// answering is the line that Answer writes once all its ports listen.
	answering = "answering\n"
)

// unreachedError means that no connection was established on a route before its first trial.
type unreachedError struct {
	// Target is the dialled address. Why is the most informative error of the attempts within Limit.
	Target, Why string
	Limit       time.Duration
	// Policies are the NetworkPolicies that select an end of the path.
	Policies []string
}

func (e *unreachedError) Error() string {
	s := fmt.Sprintf("no connection to %s within %s: %s", e.Target, e.Limit, e.Why)
	if len(e.Policies) > 0 {
		s += "; NetworkPolicies select its ends: " + strings.Join(e.Policies, ", ")
	}
	return s
}

// call is a connection to try on a route: from the pod client to the address target.
type call struct {
	plan.Route
	client string
	// servers are the pods that may accept the connection; all listen on port.
	servers []string
	target  string
	port    int
}

// calls returns the connections to try for variants. It returns one for each route that the cluster serves, and for a job
// one for each server.
func (c *Cluster) calls(variants []plan.Variant) []call {
	var all []call
	for _, r := range c.options.routes(variants) {
		e, why := c.place.ends(c.options, r)
		ends, err := c.Endpoints(r)
		if why != "" || err != nil {
			continue
		}
		dialled := ends.Servers[:1] // all have the Service's address and port, and listen on the same port
		if r.Members > 0 {
			dialled = ends.Servers
		}
		for _, server := range dialled {
			target := net.JoinHostPort(server.Address, strconv.Itoa(server.Port))
			all = append(all, call{Route: r, client: e.client, servers: e.servers, target: target, port: server.ListenPort})
		}
	}
	return all
}

// Reach waits, at most Waits.Settle, until a connection is established on every route of profiles, so that no trial uses a
// Service that the nodes do not know yet. It returns an *unreachedError for each route without a connection. It fails if
// it cannot start its programs in the servers' pods. In a run over pairs, and where exec is refused, it tries nothing.
//
// One connection proves that the client's node, or the node or balancer that is entered, translates the Service's TCP
// port to some backend. It does not prove that the node knows all of several backends, how it chooses among them, or
// that it translates the UDP port. But nodes put both ports into force together, and http, the workload with several
// backends, uses TCP.
func (c *Cluster) Reach(ctx context.Context, profiles []plan.Variant) (map[plan.Route]error, error) {
	if c.place.mesh != nil { // a pair that cannot connect is a result
		return nil, nil
	}
	calls := c.calls(profiles)
	if len(calls) == 0 || c.usesPortForward() {
		return nil, nil
	}
	silent, err := c.tryCalls(ctx, calls)
	if err != nil && (ctx.Err() != nil || !isExecRefused(err)) {
		return nil, fmt.Errorf("try the paths: %w", withAdvice(withCause(ctx, err)))
	}
	return silent, nil
}

func (c *Cluster) tryCalls(ctx context.Context, calls []call) (map[plan.Route]error, error) {
	hangUp, err := c.answerCalls(ctx, calls)
	defer hangUp()
	if err != nil {
		return nil, err
	}
	targets := map[string][]string{} // by client
	for _, one := range calls {
		if !slices.Contains(targets[one.client], one.target) {
			targets[one.client] = append(targets[one.client], one.target)
		}
	}
	failed := map[string]string{} // by client and target
	var mu sync.Mutex
	var all sync.WaitGroup
	for client, targets := range targets {
		all.Go(func() {
			why := c.dialTargets(ctx, client, targets)
			mu.Lock()
			defer mu.Unlock()
			for target, text := range why {
				failed[client+" "+target] = text
			}
		})
	}
	all.Wait()
	silent := map[plan.Route]error{}
	for _, one := range calls {
		if why := failed[one.client+" "+one.target]; why != "" {
			ends := append([]string{one.client}, one.servers...)
			silent[one.Route] = &unreachedError{Target: one.target, Why: why, Limit: c.options.Settle, Policies: c.podPolicies(ctx, ends...)}
		}
	}
	return silent, ctx.Err()
}

func (c *Cluster) usesPortForward() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forward
}

// answerCalls runs Answer in every server pod of calls, and waits until all of them listen. The caller must call hangUp, also
// after an error: it ends the programs and waits for their end.
func (c *Cluster) answerCalls(ctx context.Context, calls []call) (hangUp func(), err error) {
	ports := map[string][]string{}
	for _, one := range calls {
		for _, server := range one.servers {
			if port := strconv.Itoa(one.port); !slices.Contains(ports[server], port) {
				ports[server] = append(ports[server], port)
			}
		}
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	var inputs []io.Closer
	hangUp = func() {
		// A program that outlives its stream would occupy the port of a trial.
		for _, in := range inputs {
			_ = in.Close() // never an error
		}
		late := time.AfterFunc(hangUpLimit, stop)
		defer late.Stop()
		all.Wait()
		stop()
	}
	ready := make(chan error, len(ports))
	for _, pod := range slices.Sorted(maps.Keys(ports)) {
		argv := append([]string{program, "hold", "--answer"}, ports[pod]...)
		in, keep := io.Pipe()
		inputs = append(inputs, keep)
		var once sync.Once
		end := func(err error) { once.Do(func() { ready <- err }) }
		late := time.AfterFunc(helloLimit, func() { end(fmt.Errorf("take connections in pod %s: no word for %s", pod, helloLimit)) })
		all.Go(func() {
			defer late.Stop()
			var said tail
			err := c.exec(ctx, pod, argv, remotecommand.StreamOptions{Stdin: in, Stdout: announcing{io.Discard, func() { end(nil) }}, Stderr: &said})
			_ = keep.Close()
			end(fmt.Errorf("take connections in pod %s: %w: %s", pod, cmp.Or(err, io.EOF), said.String()))
		})
	}
	for range ports {
		if one := <-ready; one != nil && err == nil {
			err = one
		}
	}
	return hangUp, err
}

// dialTargets runs the function Reach in a client pod. It returns the error of each target to which the pod got no
// connection. If the pod does not report, it returns the reason for this as the error of every target.
func (c *Cluster) dialTargets(ctx context.Context, client string, targets []string) map[string]string {
	limit := c.options.Settle + helloLimit
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer from pod %s for %s", client, limit))
	defer stop()
	argv := []string{program, "hold", "--reach", "--for", c.options.Settle.String()}
	out, err := c.Exec(ctx, client, append(argv, targets...))
	failed := map[string]string{}
	if err == nil {
		err = json.Unmarshal(out, &failed)
	}
	if err != nil {
		for _, target := range targets {
			failed[target] = err.Error()
		}
	}
	return failed
}

// Policies returns the names of the NetworkPolicies that select an end of a path under a profile. It returns nil if they
// cannot be listed, or if the cluster does not serve the path.
func (c *Cluster) Policies(ctx context.Context, profile plan.Variant, p plan.Path) []string {
	e, why := c.place.ends(c.options, plan.Single(profile, p))
	if why != "" {
		return nil
	}
	return c.podPolicies(ctx, e.client, e.servers[0])
}

func (c *Cluster) podPolicies(ctx context.Context, names ...string) []string {
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	var pods []*corev1.Pod
	for _, s := range c.layout.pods {
		if slices.Contains(names, s.Name) && !isHostPod(s.Name) { // no policy governs the host network
			pods = append(pods, podObject(c.identity, c.options, *s))
		}
	}
	return podPolicyNames(ctx, c.client, c.namespace(false), pods)
}

// podPolicyNames returns the sorted names of the NetworkPolicies of a namespace that select one of pods; nil if they cannot be
// listed.
func podPolicyNames(ctx context.Context, client *api.Client, namespace string, pods []*corev1.Pod) []string {
	list, err := client.NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // an optional right
	}
	var names []string
	for _, p := range pods {
		names = append(names, policiesSelecting(list.Items, p)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// policiesSelecting returns the names of the policies that select the pod, as namespace/name.
func policiesSelecting(policies []networkingv1.NetworkPolicy, p *corev1.Pod) []string {
	var names []string
	for _, policy := range policies {
		s, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err == nil && s.Matches(labels.Set(p.Labels)) {
			names = append(names, policy.Namespace+"/"+policy.Name)
		}
	}
	return names
}
