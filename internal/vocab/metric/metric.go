// Package metric is the catalogue of everything that cnibench reports: name, unit, direction, definition and source.
//
// It is one table. Report headings, the direction of a verdict and docs/reference/glossary.md come from it, so a metric
// that is not here cannot be reported. Values are in base units: bit/s, 1/s, ns, ns per unit of work, ratios; scaling
// happens when a number is shown (package number), never in a name.
package metric

import (
	"iter"
	"slices"
	"strings"
)

// Better says which direction of a metric is an improvement.
type Better int

const (
	// Neither means that the metric is not judged.
	Neither Better = iota
	// Lower means that a smaller value is better.
	Lower
	// Higher means that a larger value is better.
	Higher
)

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
	// ServiceDemand's depends on the workload: see UnitFor.
	Unit string
	// Better is the direction of improvement.
	Better Better
	// Headline is true for the metrics that a report shows by default.
	Headline bool
	// Definition says in one sentence what the number means.
	Definition string
	// Source is where the term comes from.
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
	// FromDue and FromStart are families of the times to first response, from the intended time of a pod and from the start of
	// its program. OneDial is what earlier versions measured: from the intended time, by one attempt, pods without an answer left out.
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

// Parts of the time to first response, in the order of a request that waits for them: members of the family TTFRWait.
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

// Waits are these parts.
var Waits = []string{WaitSchedule, WaitSandbox, WaitContainer, WaitDevice, WaitAddress, WaitRoute, WaitRule, WaitPolicy, WaitResolution, WaitConnect, WaitAnswer, WaitUnanswered}

// Failures are the metrics that count failures themselves.
var Failures = []string{ErrorRate, FailuresPerRoll, TTFRUnanswered, FrameLossRate, ResolutionsWaited}

// EndsAtTimeout says whether a metric is a value of a distribution in which pods without an answer have their timeout.
func EndsAtTimeout(name string) bool {
	for _, family := range []string{FromDue, FromStart} {
		if end, ok := strings.CutPrefix(name, family+"."); ok {
			return end != "mean" && end != "stddev"
		}
	}
	return false
}

// ByOneDial says whether a metric is of the family OneDial, which no version writes any more.
func ByOneDial(name string) bool {
	end, ok := strings.CutPrefix(name, OneDial+".")
	return ok && slices.Contains(Statistics, end)
}

// Times are the families of times, Statistics the ends of their names.
var (
	Times      = []string{RTT, ConnectTime, ResponseTime, FromDue, FromStart, OneDial, StepTime, ExchangeTime, ResolutionTime}
	Statistics = []string{"min", "mean", "stddev", "p50", "p90", "p99", "p99.9", "max"}
)

// catalogue is in the order in which a report shows its tables: service demand first, then rates, then times.
var catalogue = slices.Concat([]Metric{
	{Name: ServiceDemand, Title: "service demand", Unit: "ns", Better: Lower, Headline: true,
		Definition: "CPU time of both ends and of the kernel between them for one unit of work: a transaction, an HTTP request, a KB (1000 B) of TCP payload, a UDP packet, a GB that the members of a job send.",
		Source:     "netperf manual, service demand"},
	{Name: Goodput, Title: "goodput", Unit: "bit/s", Better: Higher, Headline: true,
		Definition: "Payload accepted by the receiving application per second of its window.", Source: "RFC 2647 3.17"},
	{Name: Goodput + ".forward", Title: "goodput from client to server", Unit: "bit/s", Better: Higher,
		Definition: "Of a bidirectional stream, the part of its goodput that the server accepted.", Source: "RFC 2647 3.17"},
	{Name: Goodput + ".reverse", Title: "goodput from server to client", Unit: "bit/s", Better: Higher,
		Definition: "Of a bidirectional stream, the part of its goodput that the client accepted.", Source: "RFC 2647 3.17"},
	{Name: Throughput, Title: "throughput", Unit: "bit/s", Better: Higher, Headline: true,
		Definition: "Highest rate of payload at which no more datagrams were lost than is accepted, none unless said; found by a search and confirmed.", Source: "RFC 1242 3.17; RFC 2544 26.1"},
	{Name: TransactionRate, Title: "transaction rate", Unit: "1/s", Better: Higher, Headline: true,
		Definition: "Request-response exchanges completed per second; for crr each with a connection of its own.", Source: "netperf manual, TCP_RR and TCP_CRR"},
	{Name: RequestRate, Title: "request rate", Unit: "1/s", Better: Higher, Headline: true,
		Definition: "HTTP requests answered with the expected status per second.", Source: "RFC 9411 7.3.3.2"},
	{Name: PacketRate, Title: "packet rate", Unit: "1/s", Better: Higher, Headline: true,
		Definition: "Datagrams accepted by the receiving application per second of its window.", Source: "RFC 2544 26.1"},
	{Name: Capacity, Title: "capacity", Unit: "1/s", Better: Neither,
		Definition: "The rate that loads are shares of: the median of the trials in which the same requests were sent as fast as responses came.", Source: "RFC 2285 3.5.3 maximum offered load; docs/explanation/open-loop.md"},
	{Name: IntendedRate, Title: "intended rate", Unit: "1/s", Better: Neither,
		Definition: "Requests per second that the schedule of an open loop is to have.", Source: "RFC 2285 3.5.1 intended load"},
	{Name: OfferedRate, Title: "offered rate", Unit: "1/s", Better: Neither,
		Definition: "Requests per second that left the client of an open loop.", Source: "RFC 2285 3.5.2 offered load"},
	{Name: AnsweredRate, Title: "answered rate", Unit: "1/s", Better: Neither,
		Definition: "Requests per second of an open loop whose response came within the window.", Source: "RFC 2285 3.6.1 forwarding rate"},
	{Name: BesideGoodput, Title: "goodput of the stream beside", Unit: "bit/s", Better: Neither,
		Definition: "Payload per second that the server took from the stream that went over the path beside the requests.", Source: "RFC 2647 3.17"},
	{Name: OfferedLoad, Title: "offered load", Unit: "bit/s", Better: Neither,
		Definition: "Payload that left the sender per second of its window.", Source: "RFC 2285 3.5.2"},
	{Name: FrameLossRate, Title: "frame loss rate", Unit: "ratio", Better: Lower, Headline: true,
		Definition: "Share of offered datagrams that were not delivered, at the stated offered load.", Source: "RFC 1242 3.6"},
	{Name: FirstFailing, Title: "lowest rate that failed", Unit: "bit/s", Better: Neither,
		Definition: "Lowest rate of payload at which the search for the throughput saw more loss than is accepted; absent if the sender was at its limit first.", Source: "docs/explanation/udp-and-throughput.md"},
	{Name: Loss + ".socket_buffer", Title: "loss in the socket buffer", Unit: "ratio", Better: Neither,
		Definition: "Share of offered datagrams that found the receiving socket's buffer full: lost by the application.", Source: "sock_diag(7), SK_MEMINFO_DROPS"},
	{Name: Loss + ".backlog", Title: "loss in the backlog", Unit: "ratio", Better: Neither,
		Definition: "Share of offered datagrams lost because the receive backlog of a CPU was full.", Source: "/proc/net/softnet_stat"},
	{Name: Loss + ".qdisc", Title: "loss in a queueing discipline", Unit: "ratio", Better: Neither,
		Definition: "Share of offered datagrams that a queueing discipline, or a filter in its place, dropped.", Source: "tc(8), dropped"},
	{Name: Loss + ".device", Title: "loss at a device", Unit: "ratio", Better: Neither,
		Definition: "Share of offered datagrams that a network device dropped, sending or receiving, for another reason than a full backlog.", Source: "kernel documentation, interface statistics tx_dropped and rx_dropped"},
	{Name: Loss + ".path", Title: "loss elsewhere on the path", Unit: "ratio", Better: Neither,
		Definition: "Share of offered datagrams that were lost where no counter says so: by a filter rule, a route, or a host that cannot be seen.", Source: "docs/explanation/udp-and-throughput.md"},
	{Name: "rtt.p50", Title: "round-trip time, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Half of the round trips took at most this long.", Source: "RFC 2681; RFC 8219 7.2 typical latency"},
	{Name: "rtt.p90", Title: "round-trip time, 90th percentile", Unit: "ns", Better: Lower,
		Definition: "Nine of ten round trips took at most this long.", Source: "RFC 2681"},
	{Name: "rtt.p99", Title: "round-trip time, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
		Definition: "99 of 100 round trips took at most this long.", Source: "RFC 2681"},
	{Name: "rtt.p99.9", Title: "round-trip time, 99.9th percentile", Unit: "ns", Better: Lower,
		Definition: "999 of 1000 round trips took at most this long.", Source: "RFC 8219 7.2 worst-case latency"},
	{Name: "rtt.min", Title: "round-trip time, minimum", Unit: "ns", Better: Lower, Definition: "The shortest round trip of the window.", Source: "RFC 2681"},
	{Name: "rtt.mean", Title: "round-trip time, mean", Unit: "ns", Better: Lower, Definition: "The arithmetic mean of the round trips.", Source: "RFC 2681"},
	{Name: "rtt.stddev", Title: "round-trip time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the round trips.", Source: "netperf manual, STDDEV_LATENCY"},
	{Name: "rtt.max", Title: "round-trip time, maximum", Unit: "ns", Better: Lower, Definition: "The longest round trip of the window.", Source: "RFC 2681"},
	{Name: "connect_time.p50", Title: "connect time, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Half of the TCP connects returned within this time.", Source: "RFC 9411 4.3.3.1 time to connect"},
	{Name: "connect_time.p90", Title: "connect time, 90th percentile", Unit: "ns", Better: Lower, Definition: "Nine of ten TCP connects returned within this time.", Source: "RFC 9411"},
	{Name: "connect_time.p99", Title: "connect time, 99th percentile", Unit: "ns", Better: Lower, Definition: "99 of 100 TCP connects returned within this time.", Source: "RFC 9411"},
	{Name: "connect_time.min", Title: "connect time, minimum", Unit: "ns", Better: Lower, Definition: "The fastest TCP connect of the window.", Source: "RFC 9411"},
	{Name: "connect_time.mean", Title: "connect time, mean", Unit: "ns", Better: Lower, Definition: "The arithmetic mean of the connect times.", Source: "RFC 9411"},
	{Name: "connect_time.stddev", Title: "connect time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the connect times.", Source: "RFC 9411"},
	{Name: "connect_time.max", Title: "connect time, maximum", Unit: "ns", Better: Lower, Definition: "The slowest TCP connect of the window.", Source: "RFC 9411"},
	{Name: "response_time.p50", Title: "response time, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Half of the HTTP responses were whole within this time after the request was sent (closed loop) or due (open loop).", Source: "RFC 9411 4.3.3.1 time to last byte"},
	{Name: "response_time.p90", Title: "response time, 90th percentile", Unit: "ns", Better: Lower, Definition: "Nine of ten HTTP responses took at most this long.", Source: "RFC 9411"},
	{Name: "response_time.p99", Title: "response time, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
		Definition: "99 of 100 HTTP responses took at most this long.", Source: "RFC 9411"},
	{Name: "response_time.p99.9", Title: "response time, 99.9th percentile", Unit: "ns", Better: Lower, Definition: "999 of 1000 HTTP responses took at most this long.", Source: "RFC 9411"},
	{Name: "response_time.min", Title: "response time, minimum", Unit: "ns", Better: Lower, Definition: "The fastest HTTP response of the window.", Source: "RFC 9411"},
	{Name: "response_time.mean", Title: "response time, mean", Unit: "ns", Better: Lower, Definition: "The arithmetic mean of the response times.", Source: "RFC 9411"},
	{Name: "response_time.stddev", Title: "response time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the response times.", Source: "wrk, latency Stdev"},
	{Name: "response_time.max", Title: "response time, maximum", Unit: "ns", Better: Lower, Definition: "The slowest HTTP response of the window.", Source: "RFC 9411"},
	{Name: FromDue + ".p50", Title: "time to first response from the due time, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Half of the new pods had a first response within this time from the intended time of the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".p90", Title: "time to first response from the due time, 90th percentile", Unit: "ns", Better: Lower,
		Definition: "Nine of ten new pods had a first response within this time from the intended time of the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".p99", Title: "time to first response from the due time, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
		Definition: "99 of 100 new pods had a first response within this time from the intended time of the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".min", Title: "time to first response from the due time, minimum", Unit: "ns", Better: Lower,
		Definition: "The shortest time from the intended time of the pod to its first response.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".mean", Title: "time to first response from the due time, mean", Unit: "ns", Better: Lower,
		Definition: "The arithmetic mean of the times from the intended time of the pod, in which a pod without an answer counts with the timeout. The waits of its parts add up to it.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".stddev", Title: "time to first response from the due time, standard deviation", Unit: "ns", Better: Lower,
		Definition: "The standard deviation of the times from the intended time of the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromDue + ".max", Title: "time to first response from the due time, maximum", Unit: "ns", Better: Lower, Headline: true,
		Definition: "The longest time from the intended time of the pod to its first response; the timeout if a pod had none.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".p50", Title: "time to first response from the start of the program, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Half of the new pods had a first response within this time from the start of the program in the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".p90", Title: "time to first response from the start of the program, 90th percentile", Unit: "ns", Better: Lower,
		Definition: "Nine of ten new pods had a first response within this time from the start of the program in the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".p99", Title: "time to first response from the start of the program, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
		Definition: "99 of 100 new pods had a first response within this time from the start of the program in the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".min", Title: "time to first response from the start of the program, minimum", Unit: "ns", Better: Lower,
		Definition: "The shortest time from the start of the program in the pod to its first response.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".mean", Title: "time to first response from the start of the program, mean", Unit: "ns", Better: Lower,
		Definition: "The arithmetic mean of the times from the start of the program in the pod, in which a pod without an answer counts with the timeout.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".stddev", Title: "time to first response from the start of the program, standard deviation", Unit: "ns", Better: Lower,
		Definition: "The standard deviation of the times from the start of the program in the pod.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: FromStart + ".max", Title: "time to first response from the start of the program, maximum", Unit: "ns", Better: Lower,
		Definition: "The longest time from the start of the program in the pod to its first response; the timeout if a pod had none.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".p50", Title: "time to first response by one dial, median", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".p90", Title: "time to first response by one dial, 90th percentile", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".p99", Title: "time to first response by one dial, 99th percentile", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".min", Title: "time to first response by one dial, minimum", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".mean", Title: "time to first response by one dial, mean", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".stddev", Title: "time to first response by one dial, standard deviation", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: OneDial + ".max", Title: "time to first response by one dial, maximum", Unit: "ns", Better: Lower,
		Definition: "Written by earlier versions: from the intended time, by one connection attempt, over pods with an answer alone.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRUnanswered, Title: "new pods without an answer", Unit: "1", Better: Lower, Headline: true,
		Definition: "New pods of the window without a first response by their timeout, whatever the reason; the times count each with the timeout.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRDials, Title: "dials of a new pod", Unit: "1", Better: Neither,
		Definition: "Mean number of connection attempts of a new pod; 1 means that the first was answered within a millisecond.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRDialCPU, Title: "CPU time of dialling", Unit: "ns", Better: Neither,
		Definition: "Mean CPU time of the thread of a new pod that dials, from its first attempt to its answer; it is part of the service demand.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".schedule", Title: "first request, mean wait for its start", Unit: "ns", Better: Lower, Definition: "Mean time from the intended time of a new pod until its attachment began; on a cluster, until it was seen scheduled.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".sandbox", Title: "first request, mean wait for the sandbox", Unit: "ns", Better: Lower, Definition: "Mean time in which a node made the sandbox of a new pod and its CNI plugins connected it (clusters).", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".container", Title: "first request, mean wait for the container", Unit: "ns", Better: Lower, Definition: "Mean time in which the container of a new pod was made and its program began (clusters).", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".device", Title: "first request, mean wait for devices", Unit: "ns", Better: Lower, Definition: "Mean time in which the devices of a new pod were made and set.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".address", Title: "first request, mean wait for addresses", Unit: "ns", Better: Lower, Definition: "Mean time in which a new pod got its address.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".route", Title: "first request, mean wait for routes", Unit: "ns", Better: Lower, Definition: "Mean time in which the routes of a new pod were added, in the pod and on its node.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".rule", Title: "first request, mean wait for rules and programs", Unit: "ns", Better: Lower, Definition: "Mean time in which a new pod waited for its netfilter rules or BPF programs. Rules that an agent writes beside the program count from the start of the program.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".policy", Title: "first request, mean wait for policies", Unit: "ns", Better: Lower, Definition: "Mean time in which policies and the identity of a new pod were programmed, where that is a step of its own.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".resolution", Title: "first request, mean wait for neighbour resolution", Unit: "ns", Better: Lower, Definition: "Mean time in which a new pod learned the link-layer address of its next hop.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".connect", Title: "first request, mean wait for the connection", Unit: "ns", Better: Lower, Definition: "Mean time from the last step before it to the connection that was answered first, unanswered attempts included.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".answer", Title: "first request, mean wait for the answer", Unit: "ns", Better: Lower, Definition: "Mean time from the end of the handshake to the response.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: TTFRWait + ".unanswered", Title: "first request, mean wait without an answer", Unit: "ns", Better: Lower, Definition: "What pods without an answer add to the mean: from their last step to the timeout.", Source: "docs/how-to/measure-pod-start.md"},
	{Name: Jitter, Title: "jitter", Unit: "ns", Better: Lower,
		Definition: "Mean difference of the transit times of neighbouring datagrams. Absent where datagrams go or come in batches.", Source: "RFC 3550 6.4.1"},
	{Name: PDV, Title: "packet delay variation, 99.9th percentile", Unit: "ns", Better: Lower,
		Definition: "99.9th percentile of one-way transit time less its minimum in the window. Of two machines, whose clocks drift apart, the minimum is a line.", Source: "RFC 5481 4.2; RFC 8219 7.3.1"},
	{Name: RetransmitsPerG, Title: "retransmitted segments per GB", Unit: "1/GB", Better: Lower,
		Definition: "TCP segments sent again, per 10^9 bytes of goodput.", Source: "RFC 6349 3.3, put per byte so that a faster path is not blamed"},
	{Name: SendLag + ".p50", Title: "lag of the sender, median", Unit: "ns", Better: Neither,
		Definition: "Half of the requests of an open loop went out within this time after their scheduled time; it is part of the response time.", Source: "docs/explanation/open-loop.md"},
	{Name: SendLag + ".p99", Title: "lag of the sender, 99th percentile", Unit: "ns", Better: Neither,
		Definition: "99 of 100 requests of an open loop went out within this time after their scheduled time.", Source: "docs/explanation/open-loop.md"},
	{Name: SendLag + ".max", Title: "lag of the sender, maximum", Unit: "ns", Better: Neither,
		Definition: "The longest delay of a request of an open loop after its scheduled time.", Source: "docs/explanation/open-loop.md"},
	{Name: ErrorRate, Title: "error rate", Unit: "ratio", Better: Lower,
		Definition: "Share of attempted units of work that failed or timed out; the kinds are in the record.", Source: "netperf manual"},
	{Name: FailuresPerRoll, Title: "failures per rolled backend", Unit: "1", Better: Lower, Headline: true,
		Definition: "Requests that failed, for each backend that was removed from the Service, ended and added again.", Source: "docs/explanation/http.md"},
	{Name: NetworkProgramming + ".removed", Title: "network programming latency, endpoint removed", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Longest time after a backend was taken out of its Service at which a new connection still came to it, of requests that each have one; absent where they came until its drain ended, or where it did not drain.", Source: "Kubernetes SLI, network programming latency"},
	{Name: NetworkProgramming + ".added", Title: "network programming latency, endpoint added", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Longest time after a backend was put back into its Service until the first connection came to it, of requests that each have one; absent where none came.", Source: "Kubernetes SLI, network programming latency"},
	{Name: Enforcement + ".mean", Title: "delay until a change is enforced, mean", Unit: "ns", Better: Lower, Headline: true,
		Definition: "Mean time from the request of a change under churn to the first new connection that saw it.", Source: "docs/how-to/measure-churn.md"},
	{Name: Enforcement + ".p50", Title: "delay until a change is enforced, median", Unit: "ns", Better: Lower,
		Definition: "Half of the changes under churn were seen by a new connection within this time after their request.", Source: "docs/how-to/measure-churn.md"},
	{Name: Enforcement + ".p99", Title: "delay until a change is enforced, 99th percentile", Unit: "ns", Better: Lower,
		Definition: "99 of 100 changes under churn were seen by a new connection within this time.", Source: "docs/how-to/measure-churn.md"},
	{Name: Enforcement + ".max", Title: "delay until a change is enforced, maximum", Unit: "ns", Better: Lower,
		Definition: "The longest delay of a change under churn until a new connection saw it.", Source: "docs/how-to/measure-churn.md"},
	{Name: ChangeTime, Title: "time to apply a change", Unit: "ns", Better: Lower,
		Definition: "Mean time that the slowest node took to apply one change under churn, until its last rule, transaction or table entry was written.", Source: "docs/how-to/measure-churn.md"},
	{Name: ChangeCPU, Title: "CPU time of a change", Unit: "ns", Better: Lower, Headline: true,
		Definition: "CPU time that all nodes took to apply one change under churn, programs such as iptables-restore included; it is not part of the service demand.", Source: "getrusage(2)"},
	{Name: ChangeRate, Title: "rate of changes", Unit: "1/s", Better: Neither,
		Definition: "Changes per second that began within the window. Each change waits for the one before it.", Source: "docs/how-to/measure-churn.md"},
	{Name: BackendShare + ".min", Title: "share of the backend with the fewest requests", Unit: "ratio", Better: Neither,
		Definition: "Requests answered by the backend that answered the fewest, over all that were answered; 0 if a backend got none.", Source: "docs/explanation/http.md"},
	{Name: BackendShare + ".max", Title: "share of the backend with the most requests", Unit: "ratio", Better: Neither,
		Definition: "Requests answered by the backend that answered the most, over all that were answered.", Source: "docs/explanation/http.md"},
	{Name: BackendEvenness, Title: "evenness of the backends, p value", Unit: "ratio", Better: Neither,
		Definition: "Chance that connections of which each falls on any backend alike are spread at least as unevenly: Pearson's chi-squared test over connections.", Source: "docs/explanation/http.md"},
	{Name: ClientCPU, Title: "CPU time of the client per unit of work", Unit: "ns", Better: Lower, Definition: "The part of service demand charged to the client's threads.", Source: "netperf manual, local service demand"},
	{Name: ServerCPU, Title: "CPU time of the server per unit of work", Unit: "ns", Better: Lower, Definition: "The part of service demand charged to the server's threads.", Source: "netperf manual, remote service demand"},
	{Name: KernelCPU, Title: "CPU time of ksoftirqd and kernel workers per unit of work", Unit: "ns", Better: Lower, Definition: "The part of service demand charged to ksoftirqd, to the kernel's workers for the path, and to interrupts where the kernel accounts them apart.", Source: "docs/reference/numbers.md"},
	{Name: Instructions, Title: "instructions per unit of work", Unit: "1", Better: Lower, Headline: true,
		Definition: "Instructions of the path's CPUs for one unit of work, whatever ran there, by the processor's own counter in the sampled trials of run --explain; absent where the machine has none.", Source: "perf_event_open(2), PERF_COUNT_HW_INSTRUCTIONS"},
	{Name: Cycles, Title: "cycles per unit of work", Unit: "1", Better: Lower, Definition: "Cycles of the path's CPUs for one unit of work, counted like the instructions.", Source: "perf_event_open(2), PERF_COUNT_HW_CPU_CYCLES"},
	{Name: CyclesPer, Title: "cycles per instruction", Unit: "1", Better: Neither, Definition: "Cycles over instructions of the path's CPUs.", Source: "perf-stat(1)"},
	{Name: CacheMisses, Title: "cache misses per unit of work", Unit: "1", Better: Lower, Definition: "Accesses to memory that no cache held, for one unit of work, counted like the instructions.", Source: "perf_event_open(2), PERF_COUNT_HW_CACHE_MISSES"},
	{Name: BranchMisses, Title: "mispredicted branches per unit of work", Unit: "1", Better: Lower, Definition: "Branches that the processor predicted wrongly, for one unit of work, counted like the instructions.", Source: "perf_event_open(2), PERF_COUNT_HW_BRANCH_MISSES"},
	{Name: CPUUtilization, Title: "CPU utilization, idle run subtracted", Unit: "ratio", Better: Neither,
		Definition: "Busy share of the CPUs of the path in the window less the busy share measured before the run.", Source: "netperf manual, CPU utilization"},
	{Name: SoftIRQShare, Title: "share of busy time in softirq", Unit: "ratio", Better: Neither,
		Definition: "Ticks accounted to softirq and irq over all busy ticks of the CPUs of the path.", Source: "proc(5), /proc/stat"},
	{Name: Transferred, Title: "payload transferred", Unit: "B", Better: Neither, Definition: "Payload that the receiver took in the whole window; goodput is this by the window's length.", Source: "iperf3, Transfer"},
	{Name: Window, Title: "window of the measurement", Unit: "ns", Better: Neither, Definition: "How long it was measured, as another tool or an article says; our own trials have it in their record.", Source: "iperf3, Interval"},
	{Name: Retransmits, Title: "retransmitted segments", Unit: "1", Better: Neither, Definition: "TCP segments sent again in the whole window, as other tools count them; it grows with what was moved and is not judged.", Source: "iperf3, Retr"},
	{Name: Datagrams, Title: "datagrams offered", Unit: "1", Better: Neither, Definition: "Datagrams that the receiver expected in the whole window, lost ones included.", Source: "iperf3, Total Datagrams"},
	{Name: DatagramsLost, Title: "datagrams lost", Unit: "1", Better: Neither, Definition: "Datagrams that did not arrive in the whole window.", Source: "iperf3, Lost"},
	{Name: Requests, Title: "requests", Unit: "1", Better: Neither, Definition: "HTTP requests that were answered in the whole window.", Source: "wrk, requests in"},
	{Name: ProgramTime, Title: "time to program the state", Unit: "ns", Better: Lower,
		Definition: "Wall time to load all rules, programs, Services and policies into the nodes of one instance, while nothing else is raised.", Source: "docs/method.md"},
	{Name: ProgramCPU, Title: "CPU time to program the state", Unit: "ns", Better: Lower,
		Definition: "CPU time of this process and of the programs that it runs, such as iptables-restore, while the state of one instance is programmed.", Source: "getrusage(2)"},
	{Name: StateMemory, Title: "kernel memory of the state", Unit: "B", Better: Lower,
		Definition: "Growth of the kernel's slab, vmalloc and per-CPU memory while the state of one instance is programmed.", Source: "proc(5), /proc/meminfo: Slab, VmallocUsed, Percpu"},
	{Name: StateMaps, Title: "memory of the BPF maps of the state", Unit: "B", Better: Lower,
		Definition: "The part of the kernel memory of the state that is in BPF maps, those with room for more entries included.", Source: "proc(5), /proc/pid/fdinfo: memlock"},
	{Name: StateChange, Title: "time to change one object", Unit: "ns", Better: Lower,
		Definition: "Median time from the request to change one endpoint, or one policy where policies are swept, to the first new connection that sees it, while nothing else is raised or measured.", Source: "docs/how-to/measure-churn.md"},
	{Name: StateChangeCPU, Title: "CPU time to change one object", Unit: "ns", Better: Lower,
		Definition: "CPU time that all nodes take to apply such a change, programs such as iptables-restore included.", Source: "getrusage(2)"},
	{Name: IdleCPU + ".network", Title: "CPU of the network's daemons at rest", Unit: "ratio", Better: Lower, Headline: true,
		Definition: "CPU seconds per second of the daemons of the CNI and of kube-proxy while nothing is sent, mean over the nodes of the path; 100 % is one core.", Source: "kubelet, /stats/summary: usageCoreNanoSeconds"},
	{Name: IdleCPU + ".client", Title: "CPU of the client's node at rest", Unit: "ratio", Better: Lower,
		Definition: "CPU seconds per second of the whole node of the client while nothing is sent; 100 % is one core.", Source: "kubelet, /stats/summary: usageCoreNanoSeconds"},
	{Name: IdleCPU + ".server", Title: "CPU of the server's node at rest", Unit: "ratio", Better: Lower,
		Definition: "CPU seconds per second of the whole node of the server while nothing is sent; 100 % is one core.", Source: "kubelet, /stats/summary: usageCoreNanoSeconds"},
	{Name: IdleMemory + ".network", Title: "memory of the network's daemons at rest", Unit: "B", Better: Lower, Headline: true,
		Definition: "Working set of the daemons of the CNI and of kube-proxy at the end of the window, mean over the nodes of the path.", Source: "kubelet, /stats/summary: workingSetBytes"},
	{Name: IdleMemory + ".client", Title: "memory of the client's node at rest", Unit: "B", Better: Lower,
		Definition: "Working set of the whole node of the client at the end of the window.", Source: "kubelet, /stats/summary: workingSetBytes"},
	{Name: IdleMemory + ".server", Title: "memory of the server's node at rest", Unit: "B", Better: Lower,
		Definition: "Working set of the whole node of the server at the end of the window.", Source: "kubelet, /stats/summary: workingSetBytes"},
	{Name: Memory, Title: "memory of the endpoint", Unit: "B", Better: Neither, Definition: "Resident memory of the two load processes.", Source: "proc(5), statm"},
}, jobs(), resolutions())

// Counted are the metrics of sampled trials that count, by the processor's own counters.
var Counted = []string{Instructions, Cycles, CyclesPer, CacheMisses, BranchMisses}

// States are the metrics of what the state of an instance costs.
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

// Lookup returns the metric called name.
func Lookup(name string) (Metric, bool) {
	m, ok := byName[name]
	return m, ok
}

// quantiles are the percentiles that a family of metrics may have.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}}

// Percentiles are the metrics of a family of times that are percentiles, in rising order, each with its quantile.
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

// UnitFor returns the unit of metric name for a workload whose unit of work is work ("transaction", "KB", "packet").
// Metrics of CPU time and of events per unit of work carry the unit of work in their unit; all others ignore it.
func UnitFor(name, work string) string {
	switch name {
	case ServiceDemand, ClientCPU, ServerCPU, KernelCPU:
		return "ns/" + work
	case Instructions, Cycles, CacheMisses, BranchMisses:
		return "1/" + work
	}
	return byName[name].Unit
}
