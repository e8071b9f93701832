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

// Options name the cluster, and what a valid plan needs there. A Cluster without pods uses only Kubeconfig, Context and
// PullSecrets.
type Options struct {
	// Kubeconfig and Context choose the cluster; empty ones follow kubectl's rules: KUBECONFIG, ~/.kube/config, and in a
	// pod the cluster that it runs in.
	Kubeconfig, Context string
	// Cluster is the plan's. Its Image has this program as /cnibench. TTL bounds the run's time: then its pods end by
	// themselves, and leftovers may be removed. The default is a day.
	plan.Cluster
	// Paths are the paths to serve. Backends are the numbers, more than one, of pods behind one Service; Rolled the
	// numbers behind a Service that Roll changes.
	Paths            []plan.Path
	Backends, Rolled []int
	// Family is 4 or 6; 0 is the cluster's first.
	Family int
	Sends
	// NewPods means that some workload creates pods.
	NewPods bool
	// Rests means that some workload reads what the nodes use at rest.
	Rests bool
	// TrafficPolicy is the externalTrafficPolicy of Services entered from outside; default TrafficCluster.
	TrafficPolicy condition.TrafficPolicy
	// Host creates host-network pods for the profile "host", even if no path begins or ends at a host.
	Host bool
	// Tools are the tools that the image must have.
	Tools []string
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
	Waits
}

// Waits bound waiting times. (optional)
type Waits struct {
	// Ready bounds the wait for the pods, image pulls included; default three minutes. Settle bounds the wait for a
	// first connection on each path; default 90 s.
	Ready, Settle time.Duration
}

// Sends describes what the workloads send, and between which nodes.
type Sends struct {
	// UDP means that some workload sends datagrams: not every load balancer supports UDP and TCP on one port.
	UDP bool
	// Members is the number of members of the largest job, each on its own node; 0 without jobs.
	Members int
	// Pairs are set for a run over pairs of nodes; zero for one pair that the cluster chooses.
	Pairs mesh.Pairs
	// Seed is the seed of the random choice of nodes if Pairs is a sample.
	Seed uint64
}

const (
	defaultTTL   = 24 * time.Hour
	defaultReady = 3 * time.Minute
)

// ConfigError means that the request or the access to the cluster is wrong: nothing was done, and a retry fails until
// it is corrected.
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

// idLetters encodes bytes with letters and digits that a DNS label may have and that are not easily confused.
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

// Location is how to reach a cluster. Empty fields follow kubectl's rules.
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
