package kube

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
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
	Sends
	// NewPods says that some workload makes pods.
	NewPods bool
	// Rests says that some workload reads what the nodes use at rest.
	Rests bool
	// TrafficPolicy is the externalTrafficPolicy of Services entered from outside; default TrafficCluster.
	TrafficPolicy condition.TrafficPolicy
	// Host makes host-network pods for the profile "host", and not only where a path begins or ends at a host.
	Host bool
	// Tools are those that the image must have.
	Tools []string
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
	Waits
}

// Waits bound what is waited for. (optional)
type Waits struct {
	// Ready is for the pods, image pulls included; default three minutes. Settle is for a first connection on each path; default 90 s.
	Ready, Settle time.Duration
}

// Sends is what the workloads send.
type Sends struct {
	// UDP says that some workload sends datagrams: not every load balancer takes them beside TCP on one port.
	UDP bool
	// Members is how many members the largest job has, each on a node of its own; 0 without jobs.
	Members int
	// Pairs are those of a run over pairs of nodes; zero for one pair of its own choice.
	Pairs mesh.Pairs
	// Seed draws the nodes of a sample of them.
	Seed uint64
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
	o.Ready, o.Settle = cmp.Or(o.Ready, defaultReady), cmp.Or(o.Settle, defaultSettle)
	o.LoadBalancerTimeout = cmp.Or(o.LoadBalancerTimeout, plan.DefaultBalancerTimeout)
	o.TrafficPolicy = cmp.Or(o.TrafficPolicy, condition.TrafficCluster)
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
