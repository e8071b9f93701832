package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// adviceBalancer is the advice if no load balancer serves a Service.
const adviceBalancer = "a Service of type LoadBalancer needs a cloud's controller, MetalLB or the like, and perhaps --load-balancer-class; or leave the path out"

// lookup is a function that resolves a host name, such as net.Resolver.LookupNetIP. network is "ip", "ip4" or "ip6".
type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// awaitBalancers waits at most LoadBalancerTimeout until every Service of type LoadBalancer has an address. For a Service
// that gets no address it stores the reason; the paths to that Service are then not served. It fails if the API server
// refuses a request, or if ctx ends.
func (c *Cluster) awaitBalancers(ctx context.Context) error {
	waiting := slices.DeleteFunc(slices.Clone(c.layout.services), func(s serviceSpec) bool { return !s.Balancer() })
	if len(waiting) == 0 {
		return nil
	}
	c.options.Say("waiting up to %s for a load balancer: its address exposes this run's servers until the run ends", c.options.LoadBalancerTimeout)
	err := wait.PollUntilContextTimeout(ctx, beat, c.options.LoadBalancerTimeout, true, func(ctx context.Context) (bool, error) {
		var late []serviceSpec
		for _, s := range waiting {
			there, err := c.storeAddress(ctx, s)
			if err != nil {
				return false, err
			}
			if !there {
				late = append(late, s)
			}
		}
		waiting = late
		return len(waiting) == 0, nil
	})
	if err != nil && (ctx.Err() != nil || !wait.Interrupted(err)) {
		return fmt.Errorf("wait for a load balancer: %w", withAdvice(withCause(ctx, err)))
	}
	for _, s := range waiting {
		c.storeBalancerFault(ctx, s)
	}
	return nil
}

// storeAddress reads a Service and stores the first usable address of its load balancer, or why no address can be used.
// there reports whether it has stored an address. If the API server does not answer, it returns false without an error.
func (c *Cluster) storeAddress(ctx context.Context, s serviceSpec) (there bool, err error) {
	r := c.services[s]
	svc, err := c.client.Services(c.namespace(s.Host)).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		if ctx.Err() == nil && api.Passing(err) {
			return false, nil
		}
		return false, err
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		address, why := c.balancerAddress(ctx, in)
		if why != "" {
			r.why = why
			continue
		}
		r.address, r.balancer, r.mode, r.why = address, in.Hostname, corev1.LoadBalancerIPModeVIP, ""
		if in.IPMode != nil {
			r.mode = *in.IPMode
		}
		there = true
		break
	}
	c.services[s] = r
	return there, nil
}

// balancerAddress returns the IP address of an entry of a load balancer's status, or why it cannot be used. If the entry has
// only a host name, balancerAddress resolves it on this machine.
func (c *Cluster) balancerAddress(ctx context.Context, in corev1.LoadBalancerIngress) (address, why string) {
	family := c.options.Family
	if in.IP != "" {
		if api.PickFamily([]string{in.IP}, family) == "" {
			return "", fmt.Sprintf("%s is not IPv%d", in.IP, family)
		}
		return in.IP, ""
	}
	if in.Hostname == "" {
		return "", "it has neither an address nor a name"
	}
	network := "ip"
	if family != 0 {
		network += fmt.Sprint(family)
	}
	found, err := c.lookup(ctx, network, in.Hostname)
	switch {
	case err != nil:
		return "", fmt.Sprintf("its name %s cannot be resolved here: %v", in.Hostname, err)
	case len(found) == 0:
		return "", fmt.Sprintf("its name %s has no address of that family", in.Hostname)
	}
	return found[0].Unmap().String(), ""
}

// storeBalancerFault stores the reason why a Service has no address. The reason includes what storeAddress found last, or
// otherwise the Service's last warning event.
func (c *Cluster) storeBalancerFault(ctx context.Context, s serviceSpec) {
	r := c.services[s]
	seen := cmp.Or(r.why, api.LastWarning(ctx, c.client, c.namespace(s.Host), s.Name))
	if seen != "" {
		seen = " (" + seen + ")"
	}
	class := ""
	if c.options.LoadBalancerClass != "" {
		class = " of class " + c.options.LoadBalancerClass
	}
	r.why = fmt.Sprintf("no load balancer%s gave the Service an address within %s%s: %s", class, c.options.LoadBalancerTimeout.Round(time.Second), seen, adviceBalancer)
	r.address = ""
	c.services[s] = r
}

// readyBalancers returns the Services of type LoadBalancer that have an address, in the order of the layout.
func (c *Cluster) readyBalancers() []reachable {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []reachable
	for _, s := range c.layout.services {
		if r := c.services[s]; s.Balancer() && r.address != "" {
			all = append(all, r)
		}
	}
	return all
}

// balancerFact describes the addresses of Services of type LoadBalancer, with the requested class and annotations. It returns
// "" if no such Service has an address.
func (c *Cluster) balancerFact() string {
	var parts []string
	for _, r := range c.readyBalancers() {
		s := r.address
		if r.balancer != "" {
			s = r.balancer + " = " + s
		}
		if s += ", ipMode " + string(r.mode); !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if c.options.LoadBalancerClass != "" {
		parts = append(parts, "class "+c.options.LoadBalancerClass)
	}
	for _, name := range slices.Sorted(maps.Keys(c.options.ServiceAnnotations)) {
		parts = append(parts, name+"="+c.options.ServiceAnnotations[name])
	}
	return strings.Join(parts, "; ")
}

// balancerWayFact describes which part of the path to a load balancer is measured. It returns "" if no Service of type
// LoadBalancer has an address.
func (c *Cluster) balancerWayFact() string {
	all := c.readyBalancers()
	vip := func(r reachable) bool { return r.mode == corev1.LoadBalancerIPModeVIP }
	switch {
	case len(all) == 0:
		return ""
	case slices.ContainsFunc(all, vip):
		return "the client is on a node of the cluster, whose own Service rules serve an address of ipMode VIP: the way to the balancer and through it is not part of what is measured"
	}
	return "by way of the balancer: nodes have no rules for an address of ipMode Proxy"
}
