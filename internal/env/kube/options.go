package kube

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnibench/cnibench/internal/plan"
)

// Options say which cluster, where in it, and what the plan needs there.
type Options struct {
	// Kubeconfig and Context choose the cluster; empty ones follow kubectl's rules: KUBECONFIG, ~/.kube/config, and in a
	// pod the cluster that it runs in.
	Kubeconfig, Context string
	// Image has this program as /cnibench. PullPolicy is Always, IfNotPresent (default) or Never.
	Image, PullPolicy string
	// PullSecrets are names of Secrets to pull the image with, "namespace/name", or "name" in the namespace of the
	// kubeconfig's context. They are copied into the run's namespaces. (optional)
	PullSecrets []string
	// ClientNode and ServerNode are names of nodes; empty ones are chosen. (optional)
	ClientNode, ServerNode string
	// NodeSelector limits the choice; Tolerations widen it to tainted nodes. (optional)
	NodeSelector map[string]string
	Tolerations  []plan.Toleration
	// CPURequest and MemoryRequest are what a pod asks for, such as 500m and 128Mi; none is asked for when they are empty.
	CPURequest, MemoryRequest string
	// CPULimit throttles what is measured; leave it empty. (optional)
	CPULimit string
	// Paths are those that have to be served; Backends the numbers, more than one, of pods behind one Service, and Rolled
	// those of pods behind one that Roll changes.
	Paths            []plan.Path
	Backends, Rolled []int
	// Family is 4 or 6; 0 is the cluster's first.
	Family int
	// UDP says that some workload sends datagrams: not every load balancer takes them beside TCP on one port.
	UDP bool
	// TrafficPolicy is the externalTrafficPolicy of Services entered from outside: Cluster (default) or Local.
	TrafficPolicy string
	// SessionAffinity keeps a client's connections to a Service at one backend.
	SessionAffinity bool
	// BalancerClass is the loadBalancerClass of Services of type LoadBalancer, "" for the cluster's default. ServiceAnnotations
	// configure the balancer of a cloud. (optional)
	BalancerClass      string
	ServiceAnnotations map[string]string
	// BalancerTimeout bounds the wait for their addresses; default plan.DefaultBalancerTimeout.
	BalancerTimeout time.Duration
	// Host makes host-network pods for the profile "host", and not only where a path begins or ends at a host.
	Host bool
	// Name is the profile that was found in the cluster.
	Name string
	// TTL is how long the run may take: then its pods end by themselves, and what is left may be swept. Default a day.
	TTL time.Duration
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
	// CPUs are those that load threads are pinned to on each node; none leaves them to the scheduler. (optional)
	CPUs []int
	// Ready bounds the wait for the pods, image pulls included; default three minutes. (optional)
	Ready time.Duration
}

const (
	defaultTTL   = 24 * time.Hour
	defaultReady = 3 * time.Minute
	leastTTL     = time.Minute
)

// ConfigError means that what was asked for, or the way to the cluster, is wrong: nothing was done, and nothing can be
// until it is changed.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// check fills the defaults in and returns every fault of the options at once.
func (o *Options) check() error {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.Ready == 0 {
		o.Ready = defaultReady
	}
	if o.BalancerTimeout == 0 {
		o.BalancerTimeout = plan.DefaultBalancerTimeout
	}
	if o.PullPolicy == "" {
		o.PullPolicy = string(corev1.PullIfNotPresent)
	}
	if o.TrafficPolicy == "" {
		o.TrafficPolicy = string(corev1.ServiceExternalTrafficPolicyCluster)
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, o.PullPolicy) {
		fault("image pull policy %q: want Always, IfNotPresent or Never", o.PullPolicy)
	}
	if o.TrafficPolicy != string(corev1.ServiceExternalTrafficPolicyCluster) && o.TrafficPolicy != string(corev1.ServiceExternalTrafficPolicyLocal) {
		fault("traffic policy %q: want Cluster or Local", o.TrafficPolicy)
	}
	if o.Family != 0 && o.Family != 4 && o.Family != 6 {
		fault("IP family %d: want 4 or 6", o.Family)
	}
	if o.ClientNode != "" && o.ClientNode == o.ServerNode {
		fault("client and server node are both %q: name two nodes, or one and let the other be chosen", o.ClientNode)
	}
	if o.TTL < leastTTL {
		fault("a time to live of %s: want at least %s", o.TTL, leastTTL)
	}
	if o.BalancerTimeout < 0 {
		fault("a wait of %s for a load balancer: want a time", o.BalancerTimeout)
	}
	for _, text := range plan.BalancerFaults(o.BalancerClass, o.ServiceAnnotations) {
		fault("%s", text)
	}
	for _, n := range slices.Concat(o.Backends, o.Rolled) {
		if n < 2 || n > plan.MaxBackends {
			fault("%d backends of a Service: want 2 to %d", n, plan.MaxBackends)
		}
	}
	for _, q := range []struct{ what, value string }{{"CPU request", o.CPURequest}, {"memory request", o.MemoryRequest}, {"CPU limit", o.CPULimit}} {
		if q.value == "" {
			continue
		}
		if n, err := resource.ParseQuantity(q.value); err != nil || n.Sign() <= 0 {
			fault("%s %q: want a quantity such as 500m or 128Mi", q.what, q.value)
		}
	}
	faults = append(faults, plan.SecretFaults(o.PullSecrets)...)
	if err := errors.Join(faults...); err != nil {
		return &ConfigError{err}
	}
	return nil
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
