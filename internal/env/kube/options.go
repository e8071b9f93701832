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

// Options name a cluster and describe what a plan needs there. Kubeconfig and Context suffice to connect; the other fields are
// for a Cluster on which pods are created.
type Options struct {
	// Kubeconfig and Context choose the cluster. If they are "", kubectl's rules apply: KUBECONFIG, ~/.kube/config, and in
	// a pod the pod's own cluster.
	Kubeconfig, Context string
	// Cluster has the plan's settings for clusters. Its Image has cnibench as /cnibench. After its TTL, by default a day,
	// the run's pods end by themselves and its objects may be removed.
	plan.Cluster
	// Paths are the paths to serve.
	Paths []plan.Path
	// Backends has numbers of backends above 1: for each number, Services with that many backends are created. Rolled has
	// the numbers for the Services whose backends Roll may change.
	Backends, Rolled []int
	// Family is the IP family, 4 or 6; 0 is the cluster's first family.
	Family int
	Sends
	// NewPods means that some workload creates pods.
	NewPods bool
	// Rests means that the plan has the workload idle, which reads the nodes' CPU time and memory while nothing is sent.
	Rests bool
	// TrafficPolicy is the externalTrafficPolicy of Services entered from outside; default TrafficCluster.
	TrafficPolicy condition.TrafficPolicy
	// Host means that host-network pods for the profile "host" are created, even if no path begins or ends at a host.
	Host bool
	// Tools are the tools that the image must have.
	Tools []string
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
	Waits
}

// Waits bound waiting times. A value of 0 means the default. (optional)
type Waits struct {
	// Ready bounds the wait for the pods, image pulls included. The default is three minutes.
	Ready time.Duration
	// Settle bounds the wait for a first connection on each path. The default is 90 s.
	Settle time.Duration
}

// Sends describes what the workloads send, and between which nodes.
type Sends struct {
	// UDP means that some workload sends datagrams: not every load balancer supports UDP and TCP on one port.
	UDP bool
	// Members is the number of members of the largest job, each on its own node; 0 without jobs.
	Members int
	// Pairs selects the pairs of nodes of a run over pairs. The zero value means that the run uses one pair, which
	// this package chooses.
	Pairs mesh.Pairs
	// Seed is the seed of the random choice of nodes if Pairs is a sample.
	Seed uint64
}

const (
	defaultTTL   = 24 * time.Hour
	defaultReady = 3 * time.Minute
)

// ConfigError means that the plan, the options or the access to the cluster must be corrected. A retry without a
// correction fails again.
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

// Location names a cluster. For an empty field, kubectl's rules apply.
type Location struct{ Kubeconfig, Context string }

// Flags returns the flags --context and --kubeconfig for this cluster, each after a space; "" if both fields are "".
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
