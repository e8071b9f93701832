// Package metric is the catalogue of everything that cnibench reports: name, unit, direction, definition and source.
//
// It is one table, catalogue.tsv. Report headings, the direction of a verdict and docs/reference/glossary.md come from
// it, so a metric that is not here cannot be reported. Values are in base units: bit/s, 1/s, ns, ns per unit of work,
// ratios; scaling happens when a number is shown (package number), never in a name.
package metric

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
)

// Better is the direction in which a metric improves.
type Better int

const (
	// Neither means that the metric is not judged.
	Neither Better = iota
	// Lower means that a smaller value is better.
	Lower
	// Higher means that a larger value is better.
	Higher
)

var directions = map[string]Better{"lower": Lower, "higher": Higher, "-": Neither}

// String returns "lower", "higher" or "–".
func (b Better) String() string {
	switch b {
	case Lower:
		return "lower"
	case Higher:
		return "higher"
	}
	return "–"
}

// Metric describes one reported quantity.
type Metric struct {
	// Name is the identifier used in files and flags, for example "rtt.p99".
	Name string
	// Title is the heading in a report.
	Title string
	// Unit is the base unit: "bit/s", "1/s", "ns", "ratio", "1/GB", "ns/transaction", "ns/KB", "ns/packet", "B".
	// The unit of a metric per unit of work depends on the workload: see UnitFor.
	Unit string
	// Better is the direction of improvement.
	Better Better
	// Headline is true for the metrics that a report shows by default.
	Headline bool
	// Definition says in one sentence what the number means.
	Definition string
	// Source is the reference for the term.
	Source string
}

// Names of the metrics that code refers to.
const (
	ServiceDemand   = "service_demand"
	Goodput         = "goodput"
	OfferedLoad     = "offered_load"
	TransactionRate = "transaction_rate"
	PacketRate      = "packet_rate"
	FrameLossRate   = "frame_loss_rate"
	Jitter          = "jitter"
	RetransmitsPerG = "retransmits_per_gb"
	RTT             = "rtt"          // family: rtt.min, rtt.mean, rtt.p50 ...
	ConnectTime     = "connect_time" // family: connect_time.min ...
	// FromDue and FromStart are families of the times to first response: from the intended time of a pod, and from the
	// start of its program. OneDial is the family of earlier versions: from the intended time, with one attempt to connect,
	// and without pods that got no answer.
	FromDue         = "ttfr.from_due"
	FromStart       = "ttfr.from_start"
	OneDial         = "ttfr"
	TTFRUnanswered  = "ttfr.unanswered"
	TTFRDials       = "ttfr.dials"
	TTFRDialCPU     = "ttfr.dial_cpu"
	TTFRWait        = "ttfr_wait" // family: what the first request of a new pod waited for
	ErrorRate       = "error_rate"
	CPUUtilization  = "cpu_utilization"
	SoftIRQShare    = "softirq_share"
	Instructions    = "instructions"
	Cycles          = "cycles"
	CacheMisses     = "cache_misses"
	BranchMisses    = "branch_misses"
	CyclesPer       = "cycles_per_instruction"
	Memory          = "memory"
	PDV             = "pdv"
	ClientCPU       = "cpu.client"
	ServerCPU       = "cpu.server"
	KernelCPU       = "cpu.ksoftirqd"
	RequestRate     = "request_rate"
	ResponseTime    = "response_time" // family: response_time.min ...
	Transferred     = "transferred"
	BackendShare    = "backend_share" // family: backend_share.min, backend_share.max
	BackendEvenness = "backend_evenness_p"
	Window          = "window"
	Retransmits     = "retransmits"
	Datagrams       = "datagrams"
	ProgramTime     = "state.program_time"
	ProgramCPU      = "state.program_cpu"
	StateMemory     = "state.memory"
	StateMaps       = "state.map_memory"
	StateChange     = "state.change_time"
	StateChangeCPU  = "state.change_cpu"
	DatagramsLost   = "datagrams_lost"
	Requests        = "requests"
	Capacity        = "capacity"
	IntendedRate    = "intended_rate"
	OfferedRate     = "offered_rate"
	AnsweredRate    = "answered_rate"
	SendLag         = "send_lag" // family: send_lag.p50, send_lag.p99, send_lag.max
	BesideGoodput   = "beside_goodput"
	Throughput      = "throughput"
	FirstFailing    = "first_failing_rate"
	FailuresPerRoll = "failures_per_roll"
	// NetworkProgramming is a family: network_programming_latency.removed, network_programming_latency.added.
	NetworkProgramming = "network_programming_latency"
	// Enforcement is a family: enforcement.mean, enforcement.p50, enforcement.p99, enforcement.max.
	Enforcement = "enforcement"
	ChangeTime  = "change_time"
	ChangeCPU   = "change_cpu"
	ChangeRate  = "change_rate"
	IdleCPU     = "idle_cpu"    // family: idle_cpu.network, idle_cpu.client, idle_cpu.server
	IdleMemory  = "idle_memory" // family, like idle_cpu
	Loss        = "loss"        // family: loss.socket_buffer, loss.backlog, loss.qdisc, loss.device, loss.path
)

// Metrics of jobs. StepTime, ExchangeTime and HopTime are families; the members of HopTime include the depth:
// hop_time.1.p50. StepTimeBefore and StepTimeAfter are for a job that lost a member.
const (
	StepTime           = "step_time"
	ExchangeTime       = "exchange_time"
	HopTime            = "hop_time"
	StepTimeBefore     = "step_time_before"
	StepTimeAfter      = "step_time_after"
	RegroupTime        = "regroup_time"
	StepRate           = "step_rate"
	AlgorithmBandwidth = "algorithm_bandwidth"
	BusBandwidth       = "bus_bandwidth"
	// WaitedShare is how long members waited for one member alone, the one with the longest waits. It is a share of
	// the exchange times of members that wait for several others.
	WaitedShare = "waited_share"
)

// Metrics of name resolution.
const (
	ResolutionTime       = "resolution_time" // family
	ResolutionRate       = "resolution_rate"
	QueryRate            = "query_rate"
	QueriesPerResolution = "queries_per_resolution"
	ResolutionsWaited    = "resolutions_waited"
	InsertFailed         = "conntrack_insert_failed"
	Clashes              = "conntrack_clashes"
)

// Parts of the time to first response, in the order in which a request waits for them. They are members of the family
// TTFRWait.
const (
	WaitSchedule   = "schedule"
	WaitSandbox    = "sandbox"
	WaitContainer  = "container"
	WaitDevice     = "device"
	WaitAddress    = "address"
	WaitRoute      = "route"
	WaitRule       = "rule"
	WaitPolicy     = "policy"
	WaitResolution = "resolution"
	WaitConnect    = "connect"
	WaitAnswer     = "answer"
	WaitUnanswered = "unanswered"
)

// Waits lists the parts of the time to first response in the order in which a request waits for them.
var Waits = []string{WaitSchedule, WaitSandbox, WaitContainer, WaitDevice, WaitAddress, WaitRoute, WaitRule, WaitPolicy, WaitResolution, WaitConnect, WaitAnswer, WaitUnanswered}

// Failures are the metrics whose value is a number or a share of failures.
var Failures = []string{ErrorRate, FailuresPerRoll, TTFRUnanswered, FrameLossRate, ResolutionsWaited}

// EndsAtTimeout reports whether a metric is a percentile, minimum or maximum of FromDue or FromStart. In such a metric, pods
// without an answer count with their timeout.
func EndsAtTimeout(name string) bool {
	for _, family := range []string{FromDue, FromStart} {
		if end, ok := strings.CutPrefix(name, family+"."); ok {
			return end != "mean" && end != "stddev"
		}
	}
	return false
}

// ByOneDial reports whether a metric belongs to the family OneDial, which current versions do not write.
func ByOneDial(name string) bool {
	end, ok := strings.CutPrefix(name, OneDial+".")
	return ok && slices.Contains(Statistics, end)
}

// Times are the families of times. Statistics are the suffixes of the metrics of a family.
var (
	Times      = []string{RTT, ConnectTime, ResponseTime, FromDue, FromStart, OneDial, StepTime, ExchangeTime, ResolutionTime}
	Statistics = []string{"min", "mean", "stddev", "p50", "p90", "p99", "p99.9", "max"}
)

//go:embed catalogue.tsv
var text string

// catalogue has all metrics in the order in which a report shows their tables: service demand first, then rates, then times.
var catalogue = func() (all []Metric) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, Metric{Name: f[0], Unit: f[1], Better: directions[f[2]], Headline: f[3] == "headline", Title: f[4], Definition: f[5], Source: f[6]})
	}
	return all
}()

// Counted are the metrics of sampled trials that come from the counters of the processor.
var Counted = []string{Instructions, Cycles, CyclesPer, CacheMisses, BranchMisses}

// States are the metrics of the time, CPU time and memory that the Services and policies of an instance cost.
var States = []string{ProgramTime, ProgramCPU, StateMemory, StateMaps, StateChange, StateChangeCPU}

var byName = func() map[string]Metric {
	m := make(map[string]Metric, len(catalogue))
	for _, c := range catalogue {
		m[c.Name] = c
	}
	return m
}()

// All returns the catalogue in report order.
func All() []Metric { return slices.Clone(catalogue) }

// Names returns the names of all metrics.
func Names() []string {
	names := make([]string, len(catalogue))
	for i, m := range catalogue {
		names[i] = m.Name
	}
	return names
}

// Lookup returns the metric called name, false if the catalogue does not have it.
func Lookup(name string) (Metric, bool) {
	m, ok := byName[name]
	return m, ok
}

// quantiles are the percentiles that a family of metrics may have.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}}

// Percentiles yields the names of a family's percentiles in the catalogue, in rising order, each with its quantile (0.5 for
// p50).
func Percentiles(family string) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, q := range quantiles {
			name := family + "." + q.name
			if _, ok := byName[name]; ok && !yield(name, q.q) {
				return
			}
		}
	}
}

// UnitFor returns the unit of metric name for a workload whose unit of work is work ("transaction", "KB", "packet"). The
// unit contains work for metrics of CPU time or processor events per unit of work; for other metrics it does not.
func UnitFor(name, work string) string {
	switch name {
	case ServiceDemand, ClientCPU, ServerCPU, KernelCPU:
		return "ns/" + work
	case Instructions, Cycles, CacheMisses, BranchMisses:
		return "1/" + work
	}
	return byName[name].Unit
}
