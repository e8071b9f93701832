package kube

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/env/kube/trait"
	"github.com/cnibench/cnibench/internal/plan"
)

// Options say which cluster, and what a valid plan needs there. Only Kubeconfig, Context and PullSecrets matter to a
// Cluster that makes no pods.
type Options struct {
	// Kubeconfig and Context choose the cluster; empty ones follow kubectl's rules: KUBECONFIG, ~/.kube/config, and in a
	// pod the cluster that it runs in.
	Kubeconfig, Context string
	// Cluster is the plan's, with the Image that has this program as /cnibench. TTL is how long the run may take: then
	// its pods end by themselves, and what is left may be swept. Default a day.
	plan.Cluster
	// Paths are those that have to be served; Backends the numbers, more than one, of pods behind one Service, and Rolled
	// those of pods behind one that Roll changes.
	Paths            []plan.Path
	Backends, Rolled []int
	// Family is 4 or 6; 0 is the cluster's first.
	Family int
	// UDP says that some workload sends datagrams: not every load balancer takes them beside TCP on one port.
	UDP bool
	// TrafficPolicy is the externalTrafficPolicy of Services entered from outside; default TrafficCluster.
	TrafficPolicy plan.TrafficPolicy
	// Host makes host-network pods for the profile "host", and not only where a path begins or ends at a host.
	Host bool
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
	// Ready bounds the wait for the pods, image pulls included; default three minutes. (optional)
	Ready time.Duration
}

const (
	defaultTTL   = 24 * time.Hour
	defaultReady = 3 * time.Minute
)

// ConfigError means that what was asked for, or the way to the cluster, is wrong: nothing was done, and nothing can be
// until it is changed.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// withDefaults returns o with its defaults filled in.
func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.Ready = cmp.Or(o.Ready, defaultReady)
	o.LoadBalancerTimeout = cmp.Or(o.LoadBalancerTimeout, plan.DefaultBalancerTimeout)
	o.TrafficPolicy = cmp.Or(o.TrafficPolicy, plan.TrafficCluster)
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	return o
}

// idLetters can stand in a DNS label and are not taken for one another.
var idLetters = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// RunID returns a new name for a run: eight lower-case letters and digits, the first a letter.
func RunID() string {
	for {
		var random [5]byte
		_, _ = rand.Read(random[:]) // it never fails
		if id := strings.ToLower(idLetters.EncodeToString(random[:])); id[0] >= 'a' {
			return id
		}
	}
}

// Location says how to reach a cluster. Empty fields follow kubectl's rules.
type Location struct{ Kubeconfig, Context string }

// Flags returns the flags of a command for this cluster, each with a space before it.
func (l Location) Flags() string {
	var flags string
	if l.Context != "" {
		flags += " --context " + l.Context
	}
	if l.Kubeconfig != "" {
		flags += " --kubeconfig " + l.Kubeconfig
	}
	return flags
}

// Nodes returns the nodes of the path: the client's, and the server's if there is one.
func (c *Cluster) Nodes() []string {
	return slices.DeleteFunc([]string{c.place.client, c.place.server}, func(name string) bool { return name == "" })
}

// Ground is what there is to prove a verdict with: the pods that stand, and the direct paths of the plan between them.
func (c *Cluster) Ground(profile string) detect.Ground {
	g := detect.Ground{Profile: profile}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spec := range c.layout.pods {
		s, ok := c.pods[spec.Name]
		if !ok {
			continue
		}
		e := detect.End{Pod: spec.Name, Node: spec.Node, By: c, Host: spec.Host()}
		e.Address, _ = netip.ParseAddr(trait.PickFamily(s.addresses, c.options.Family)) // unknown is the zero address
		switch spec.Name {
		case podClient, hostClient:
			e.Role = "client"
		case podServer, hostServer:
			e.Role = "server"
		}
		g.Ends = append(g.Ends, e)
	}
	for _, p := range c.options.Paths {
		if p.To != plan.Pod && p.To != plan.Host {
			continue
		}
		e, why := c.place.ends(c.options, plan.Single("", p))
		if why != "" {
			continue
		}
		r := detect.Route{Path: p.String(), Client: e.client, Server: e.servers[0]}
		again := func(other detect.Route) bool { return other.Client == r.Client && other.Server == r.Server }
		if r.Client != r.Server && !slices.ContainsFunc(g.Routes, again) {
			g.Routes = append(g.Routes, r)
		}
	}
	return g
}
