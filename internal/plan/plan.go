// Package plan defines what to measure: profiles, paths and workloads. It expands them into cases in a seeded order, in
// which cases that are compared are close in time.
//
// It is plain data, without handles or state. Read Plan, Case and Cases. Durations are time.Duration, sizes bytes,
// rates bit/s of payload.
package plan

import (
	"cmp"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// APIVersion is the version of plan files that this package reads.
const APIVersion = "cnibench/v1"

// DefaultMargin is the share that a Plan.Margin of 0 means.
const DefaultMargin = 0.03

// Plan is one experiment. The settings (settings.go) define the meaning, the values and the flag of each field. The
// function Default returns the defaults.
type Plan struct {
	Name        string `json:"name,omitempty"`
	Environment string `json:"environment"`
	// Profiles are the variants to measure; the baseline is added if it is missing.
	Profiles []Variant `json:"profiles"`
	// Sweep measures each of Profiles at several values of one condition.
	Sweep Sweep  `json:"sweep,omitzero"`
	Paths []Path `json:"paths"`
	// Workloads are normalized.
	Workloads []Workload `json:"workloads"`
	loadSize
	// Pairs are the pairs of nodes between which every case is measured.
	Pairs    mesh.Pairs `json:"pairs,omitzero"`
	Baseline Variant    `json:"baseline"`
	// Twin is true if the baseline is measured a second time as a separate variant. Then every run has two variants
	// that must not differ.
	Twin bool `json:"twin"`
	// Sequential is true if one profile is measured after the other in the order of the plan, without shuffling, as in
	// most published comparisons. A drift of the machine then looks like a difference between profiles.
	Sequential  bool `json:"sequential,omitempty"`
	Repetitions int  `json:"repetitions"`
	// MaxRepetitions bounds the repetitions that Precision may add; 0 means Repetitions.
	MaxRepetitions int `json:"max_repetitions,omitempty"`
	// Precision is the requested half-width of the interval of an undecided headline number, as a share of its value,
	// for example 0.05. 0 means that only Repetitions decides.
	Precision float64 `json:"precision,omitempty"`
	// Explain is true if a sampled trial follows each trial and shows where its CPU time is spent.
	Explain bool `json:"explain,omitempty"`
	// Margin is the share up to which a difference does not matter to the reader; 0 means DefaultMargin. It does not
	// affect trials.
	Margin float64 `json:"margin,omitempty"`
	// Budget bounds the wall time of the whole run; 0 is unbounded. Trials that have not started by then are not
	// measured.
	Budget time.Duration `json:"budget,omitempty"`
	// Duration is the measurement window of each trial, Warmup the discarded time before it.
	Duration time.Duration `json:"duration"`
	Warmup   time.Duration `json:"warmup"`
	Seed     uint64        `json:"seed"`
	Lab      Lab           `json:"lab"`
	// Own are the profile files of profiles outside the catalogue.
	Own []OwnSource `json:"profile_files,omitempty"`
	// Cluster has the conditions of a run on Kubernetes.
	Cluster Cluster `json:"kubernetes,omitzero"`
}

// loadSize has the number of flows of every workload and the size of its messages, requests and responses in bytes. 0
// means the workload's own value.
type loadSize struct {
	Flows   int `json:"flows,omitempty"`
	Message int `json:"message,omitempty"`
}

// Lab has the conditions of the embedded lab.
type Lab struct {
	Nodes       int                 `json:"nodes"`
	PodsPerNode int                 `json:"pods_per_node"`
	NIC         NIC                 `json:"nic"`
	CPU         condition.Placement `json:"cpu"`
	MTU         int                 `json:"mtu"`
	// PodMTU is the MTU of pods; 0 means MTU without the overhead of the profile.
	PodMTU int `json:"pod_mtu,omitempty"`
	// GRO says whether nodes merge the frames that they receive.
	GRO condition.GRO `json:"gro,omitempty"`
	// BigTCP says whether super-packets may be longer than 64 KiB.
	BigTCP condition.BigTCP `json:"big_tcp,omitempty"`
	// RPS says whether received packets of a node and its pods are spread over the node's CPUs (receive packet steering).
	RPS condition.RPS `json:"rps,omitempty"`
	// LineRate is the rate in bit/s to which the egress of every node NIC is shaped; 0 is unshaped.
	LineRate float64 `json:"line_rate,omitempty"`
	wires
	// Services is the number of Services of each profile in addition to the measured ones.
	Services int `json:"services,omitempty"`
	// Endpoints is the number of endpoints of each of the additional Services. Position is the place of the measured
	// Services among them.
	Endpoints int                       `json:"endpoints,omitempty"`
	Position  condition.Position        `json:"position,omitempty"`
	Iptables  condition.IptablesBackend `json:"iptables"`
	// ServiceProxy is the mode of kube-proxy, for profiles that use kube-proxy and do not determine its mode.
	ServiceProxy condition.ProxyMode `json:"service_proxy,omitempty"`
	// Family is the version of IP that nodes, pods and Services use.
	Family int `json:"family,omitempty"`
	// TrafficPolicy is the externalTrafficPolicy of the measured Services. With "Local" a node forwards outside traffic
	// only to its own endpoints and keeps the client's address.
	TrafficPolicy condition.TrafficPolicy `json:"traffic_policy,omitempty"`
	// Policies is the number of NetworkPolicies that select every pod and allow the measured traffic with their last
	// rule. PoliciesUnselected is the number of those that select no pod.
	Policies           int `json:"policies,omitempty"`
	PoliciesUnselected int `json:"policies_unselected,omitempty"`
	// Connections is the number of standing connections in each node's connection table, in addition to the measured
	// ones.
	Connections int `json:"connections,omitempty"`
	// Churn describes the changes of one kind of object during the trials.
	Churn churn `json:"churn,omitzero"`
	tracking
	// BridgeNetfilter says whether netfilter sees the packets that a bridge switches between pods.
	BridgeNetfilter condition.BridgeNetfilter `json:"bridge_netfilter,omitempty"`
}

// wires are conditions of the links between hosts and the switch: encryption, and known faults that test the
// measurement itself.
type wires struct {
	// Delay is the additional delay of every packet that a host sends. Loss is the share of these packets that are
	// lost.
	Delay time.Duration `json:"delay,omitempty"`
	Loss  float64       `json:"loss,omitempty"`
	// Plants are the known faults that a run adds to named nodes and links, in order to test the search for faults.
	Plants []mesh.Plant `json:"plants,omitempty"`
	// Encryption is how packets between nodes are encrypted, for profiles that can encrypt them.
	Encryption condition.Encryption `json:"encryption,omitempty"`
}

// tracking says how nodes treat connections between pods.
type tracking struct {
	// Conntrack says whether nodes track connections between pods. If not, Services are not served.
	Conntrack condition.Conntrack `json:"conntrack,omitempty"`
	// Flowtable is the number of packets after which a flowtable forwards a connection past the node's rules; 0 is never.
	Flowtable int `json:"flowtable,omitempty"`
}

// Case is one cell of the experiment: a variant of a profile on a path under a workload.
type Case struct {
	Profile  Variant  `json:"profile"`
	Path     Path     `json:"path"`
	Workload Workload `json:"workload"`
}

// Key returns the key of the case in files and tables: "profile path workload".
func (c Case) Key() string {
	return c.Profile.String() + " " + c.Path.String() + " " + c.Workload.String()
}

// NIC returns the NIC model of the case: the model that its workload or variant sets, or else run, the model of the
// whole run. It returns "" on a cluster.
func (c Case) NIC(run NIC) NIC {
	if c.Profile.Context() != "" {
		return ""
	}
	return cmp.Or(c.Workload.nicModel(), c.Profile.Lab(Lab{NIC: run}).NIC)
}

// Trial is one execution of a case. Repetition counts from 1. Pair is the zero Pair unless the plan has pairs of nodes.
type Trial struct {
	Case
	Repetition int       `json:"repetition"`
	Pair       mesh.Pair `json:"pair,omitzero"`
}

// Route returns the route of a trial, including its pair of nodes.
func (t Trial) Route() Route {
	r := t.Case.Route()
	r.Pair = t.Pair
	return r
}

// Key returns the key of the case, followed by the pair of nodes if there is one.
func (t Trial) Key() string {
	if t.Pair.IsZero() {
		return t.Case.Key()
	}
	return t.Case.Key() + " " + t.Pair.String()
}

// NIC is the model of the NICs in a lab. It determines where bulk data is cut into frames.
type NIC string

const (
	// NICWire cuts everything into frames of the MTU before the path. NICIdeal cuts it after the path, which
	// super-packets then cross.
	NICWire  NIC = "wire"
	NICIdeal NIC = "ideal"
)

// Label returns the name of the model in a report: "ideal NIC", "no NIC offload", or "" without a model.
func (n NIC) Label() string {
	return map[NIC]string{NICIdeal: "ideal NIC", NICWire: "no NIC offload"}[n]
}
