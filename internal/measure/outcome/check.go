package outcome

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Ids of the warnings, for programs. They are stable.
const (
	softnetDrop     = "softnet-drop"
	deviceDrop      = "device-drop"
	receiveBuffer   = "receive-buffer"
	OfferedLoad     = "offered-load-not-reached"
	Disagree        = "counters-disagree"
	AboveLineRate   = "above-line-rate"
	irqApart        = "irq-apart"
	irqUnknown      = "irq-unknown"
	ksoftirqdHidden = "ksoftirqd-hidden"
	Errors          = "errors"
	retransmits     = "retransmits"
	Congestion      = "congestion"
	meterHeavy      = "meter-heavy"
	CPUSteal        = "cpu-steal"
	CPUThrottled    = "cpu-throttled"
	cpuHot          = "cpu-hot"
	OtherLoad       = "other-load"
	fewSamples      = "few-samples"
	fewOperations   = "few-operations"
	IdleSoftIRQ     = "idle-softirq"
	WindowSkew      = "window-skew"
	idleBackend     = "idle-backend"
	Saturated       = "saturated"
	LateSender      = "late-sender"
	sharedSpin      = "shared-spin"
	idSilentEnd     = "silent-end"
	shortDrain      = "short-drain"
	absentBackend   = "absent-backend"
	idWideGap       = "wide-gap"
	churnBehind     = "churn-behind"
	straggler       = "straggler"
	lostMember      = "member-lost"
)

// Thresholds of the checks, as shares.
const (
	disagreement = 0.05  // between counts that should be equal
	shortfall    = 0.02  // of the offered load, and tolerance of the line rate
	heavyMeter   = 0.1   // of the load's CPU time
	noticeable   = 0.02  // of the window: less CPU time is harmless
	stolen       = 0.01  // of the path's CPU time
	unaccounted  = 0.02  // share of the path's CPU time, beyond what the resolution of clocks explains
	strange      = 0.2   // share of the CPU time of whole nodes, which have other work
	resent       = 0.001 // of the segments sent
	// fewest is the least number of operations per flow or connection without a warning. An edge of the window cuts one
	// operation, which is then an error of at most 5 %.
	fewest = 20
	// slack is by how many units per flow two counts may differ: the units in flight at the edges of the window.
	slack = 2
	// buffered is how many more bytes a flow's buffers may hold at one edge of the window than at the other.
	buffered = 1 << 20
)

// check is one validity check: find returns the evidence of a fault, or "".
type check struct {
	id   string
	find func(*trial) string
}

var checks = []check{
	{softnetDrop, (*trial).describeSoftnetDrops},
	{deviceDrop, eachSideCheck((*trial).describeDeviceDrops)},
	{receiveBuffer, eachSideCheck((*trial).describeFullReceiveBuffer)},
	{OfferedLoad, (*trial).describeUnreachedLoad},
	{Disagree, (*trial).describeUnequalCounts},
	{AboveLineRate, (*trial).describeLineRateExcess},
	{irqApart, (*trial).describeIRQApart},
	{irqUnknown, (*trial).describeIRQUnknown},
	{ksoftirqdHidden, (*trial).describeHiddenKsoftirqd},
	{Errors, eachSideCheck((*trial).describeErrorCounts)},
	{retransmits, eachSideCheck((*trial).describeResentSegments)},
	{Congestion, eachSideCheck((*trial).describeWrongCongestion)},
	{meterHeavy, eachSideCheck((*trial).describeHeavyMeter)},
	{CPUSteal, (*trial).describeCPUSteal},
	{CPUThrottled, eachSideCheck((*trial).describeCPUThrottling)},
	{cpuHot, eachSideCheck((*trial).describeHotCPU)},
	{OtherLoad, (*trial).describeOtherLoad},
	{fewSamples, (*trial).describeFewSamples},
	{fewOperations, eachSideCheck((*trial).describeFewOperations)},
	{IdleSoftIRQ, (*trial).describeIdleSoftIRQ},
	{WindowSkew, (*trial).describeWindowSkew},
	{idleBackend, (*trial).describeIdleBackends},
	{Saturated, (*trial).describeLateResponses},
	{LateSender, (*trial).describeLateSender},
	{sharedSpin, (*trial).describeSharedSpin},
	{idSilentEnd, (*trial).describeSilentEnding},
	{shortDrain, (*trial).describeShortDrains},
	{absentBackend, (*trial).describeAbsentBackends},
	{churnBehind, (*trial).describeSlowChurn},
	{straggler, describeStraggler},
	{lostMember, describeLostMember},
}

func (t *trial) failedChecks() []sample.Warning {
	var found []sample.Warning
	for _, c := range checks {
		if message := c.find(t); message != "" {
			found = append(found, sample.Warning{ID: c.id, Message: message})
		}
	}
	return found
}

// evidenceIf returns the formatted evidence if found is true, otherwise "".
func evidenceIf(found bool, format string, args ...any) string {
	if !found {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// eachSideCheck returns a check that joins the evidence of both sides, each after the side's name.
func eachSideCheck(find func(*trial, *side) string) func(*trial) string {
	return func(t *trial) string {
		var all []string
		for i, s := range []*side{t.client, t.server} {
			if s == nil {
				continue
			}
			if what := find(t, s); what != "" {
				all = append(all, [...]string{"client: ", "server: "}[i]+what)
			}
		}
		return strings.Join(all, "; ")
	}
}

func (t *trial) describeSoftnetDrops() string {
	// Both sides may be on one machine and report the same drops.
	dropped := max(t.client.hostDelta().SoftnetDropped, t.server.hostDelta().SoftnetDropped)
	return evidenceIf(dropped > 0, "%d packets were dropped because a CPU's receive backlog was full (net.core.netdev_max_backlog)", dropped)
}

func (t *trial) describeDeviceDrops(s *side) string {
	return describeNonzeroCounters(s.hostDelta().Devices, func(counter string) bool {
		return strings.HasSuffix(counter, "_dropped") || strings.HasSuffix(counter, "_errors")
	})
}

// describeNonzeroCounters lists the counters above 0 that want selects, in the order of their names.
func describeNonzeroCounters[N int64 | uint64](counters map[string]N, want func(string) bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if n := counters[name]; n > 0 && want(name) {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(list, ", ")
}

func (t *trial) describeFullReceiveBuffer(s *side) string {
	lost := s.hostDelta().SNMP["Udp.RcvbufErrors"]
	return evidenceIf(t.is.Protocol == plan.UDP && lost > 0,
		"%d datagrams arrived and found the socket's receive buffer full: lost by the application, not by the network", lost)
}

func (t *trial) describeUnreachedLoad() string {
	if t.is.Open() {
		return t.describeUnsentRequests()
	}
	offered, ok := t.metrics[metric.OfferedLoad]
	intended := t.is.Rate * float64(len(t.directions()))
	return evidenceIf(ok && intended > 0 && offered < (1-shortfall)*intended, "%s left the sender, %s were intended", formatBitRate(offered), formatBitRate(intended))
}

func (t *trial) describeUnequalCounts() string {
	if t.client != nil && t.client.Job != nil {
		return describeUnequalBytes(t)
	}
	if t.client == nil || t.server == nil || t.is.Kernel() {
		return ""
	}
	what, a, b := t.comparedCounts()
	// The two windows differ, so this compares rates. Units in flight at the edges of each flow's window may differ.
	each := slack
	if t.is.Work == plan.Kilobyte {
		each = buffered
	}
	room := float64(each*t.is.Concurrency()) / min(t.client.seconds(), t.server.seconds())
	return evidenceIf(math.Abs(a-b) > max(disagreement*max(a, b), room),
		"%s: %s by one side, %s by the other", what, number.WithUnit("1/s", a), number.WithUnit("1/s", b))
}

// comparedCounts returns the numbers that should be equal on both sides, per second of their own windows.
func (t *trial) comparedCounts() (what string, a, b float64) {
	switch t.is.Work {
	case plan.Kilobyte:
		a, _ = t.summedRate(direction.sendingSide, (*side).sentBytes)
		b, _ = t.summedRate(direction.receivingSide, (*side).receivedBytes)
		return "bytes sent and received", a, b
	case plan.Packet:
		a, _ = t.summedRate(direction.sendingSide, func(s *side) float64 { return s.datagramsIn(s.sentBytes()) })
		b, _ = t.summedRate(direction.receivingSide, func(s *side) float64 {
			if s.Datagrams == nil {
				return s.datagramsIn(s.receivedBytes())
			}
			return s.datagramsIn(s.receivedBytes()) + float64(s.Datagrams.Lost)
		})
		return "datagrams sent and received or lost", a, b
	case plan.NewPod: // servers may answer beyond the window, and a pod that dialled again sent several requests
		answered := t.client.units()
		return "requests of new pods and their answers", t.client.perSecond(answered), t.client.perSecond(max(answered, t.server.units()-t.repeatedDials()))
	}
	return t.is.Work + "s of client and server", t.client.perSecond(t.client.units()), t.server.perSecond(t.server.units())
}

// repeatedDials returns how often new pods dialled after their first attempts.
func (t *trial) repeatedDials() float64 {
	if p := t.client.Pods; p != nil && p.First != nil {
		return max(0, float64(p.Dials)-float64(p.First.Count()))
	}
	return 0
}

func (s *side) seconds() float64 { return float64(s.ElapsedNs) / 1e9 }

// Bytes of headers in and around an IPv4 packet: a shaper counts them, and payload excludes them.
const (
	ethernetHeader = 14
	tcpHeaders     = 52 // with time stamps
	udpHeaders     = 28
)

func (t *trial) describeLineRateExcess() string {
	goodput, ok := t.metrics[metric.Goodput]
	if !ok || t.c.LineRate <= 0 {
		return ""
	}
	limit := t.c.LineRate * float64(len(t.directions()))
	if t.c.NIC == plan.NICWire && t.c.MTU > tcpHeaders {
		payload := t.c.MTU - tcpHeaders
		if t.is.Protocol == plan.UDP {
			payload = min(t.is.Message, t.c.MTU-udpHeaders)
			limit *= float64(payload) / float64(payload+udpHeaders+ethernetHeader)
		} else {
			limit *= float64(payload) / float64(t.c.MTU+ethernetHeader)
		}
	}
	return evidenceIf(goodput > (1+shortfall)*limit,
		"goodput of %s is more than the %s that a line of %s can carry", formatBitRate(goodput), formatBitRate(limit), formatBitRate(t.c.LineRate))
}

func formatBitRate(v float64) string { return number.WithUnit("bit/s", v) }

func (t *trial) describeIRQApart() string {
	if !t.c.IRQApart {
		return ""
	}
	if _, ok := t.metrics[metric.KernelCPU]; !ok {
		return "this kernel keeps interrupt time out of the CPU clocks of tasks, and no other source has it: no service demand"
	}
	return fmt.Sprintf("this kernel keeps interrupt time out of the CPU clocks of tasks: it is added from /proc/stat, all that %s had, in ticks of 10 ms",
		number.Counted(t.pathCPUs(), "CPU"))
}

func (t *trial) describeIRQUnknown() string {
	_, demand := t.metrics[metric.ServiceDemand]
	return evidenceIf(demand && t.c.IRQUnknown, "cannot tell whether this kernel keeps interrupt time out of the CPU clocks of tasks: if it does, service demand lacks it")
}

func (t *trial) describeHiddenKsoftirqd() string {
	_, demand := t.metrics[metric.ServiceDemand]
	_, whole := t.metrics[metric.KernelCPU]
	return evidenceIf(!t.c.IRQApart && demand && !whole, "ksoftirqd is not visible from this end: service demand lacks its CPU time")
}

// idleInterruptReason returns why softirq work may be charged to no task, "" if it cannot. A kernel without separate
// interrupt accounting charges the work to no task, not even to ksoftirqd, if the CPU was idle.
func (t *trial) idleInterruptReason() string {
	n := t.pathCPUs()
	switch {
	case t.c.IRQApart:
		return ""
	case n > 1:
		return fmt.Sprintf("on a path of %d CPUs, softirq work that finds its CPU idle is charged to no task", n)
	case t.c.LineRate > 0:
		return "a shaper releases packets on an idle CPU, whose time is charged to no task"
	}
	return ""
}

// describeIdleSoftIRQ describes softirq work that no task was charged for, because its CPU was idle. If the machine's counters
// allow it, it says how much at most; otherwise only that there may be such work.
func (t *trial) describeIdleSoftIRQ() string {
	why := t.idleInterruptReason()
	if _, ok := t.metrics[metric.ServiceDemand]; !ok || why == "" {
		return ""
	}
	a, ok := t.cpuAccount()
	if !ok || t.client.hostDelta().KsoftirqdNs == nil {
		return why + ": service demand is a lower bound"
	}
	untold := a.missingCPUs() - a.otherTaskCPUs()
	return evidenceIf(untold > a.tolerance(unaccounted), "%s: service demand is a lower bound, and %s of the time of the path's CPUs is in no task",
		why, number.Percent(untold/a.cpus))
}

func (t *trial) describeErrorCounts(s *side) string {
	// The errors of rolled backends are the result. Servers of new pods see attempts that their clients abandon.
	return describeNonzeroCounters(s.Errors, func(string) bool { return !t.hasRolls() && !(t.is.NewPods() && s == t.server) })
}

func (t *trial) describeResentSegments(s *side) string {
	again, out, of := s.segments()
	return evidenceIf(t.is.Protocol == plan.TCP && again > resent*out, "%.0f of %.0f segments were retransmitted (%s)", again, out, of)
}

// segments returns how many TCP segments a side retransmitted and sent, and the source of the counters: the flows, or
// for crr the namespace, because its flows are short.
func (s *side) segments() (again, out float64, of string) {
	if s.TCP != nil {
		return float64(s.TCP.Retransmits), float64(s.TCP.SegmentsOut), "flows of this trial"
	}
	counters := s.hostDelta().SNMP
	return float64(counters["Tcp.RetransSegs"]), float64(counters["Tcp.OutSegs"]), "all of the namespace"
}

func (t *trial) describeWrongCongestion(s *side) string {
	if s.TCP == nil || s.TCP.Congestion == "" {
		return ""
	}
	return evidenceIf(s.TCP.Congestion != t.is.Congestion, "congestion control is %s instead of %s", s.TCP.Congestion, t.is.Congestion)
}

func (t *trial) describeHeavyMeter(s *side) string {
	own, all := float64(s.CPU.ThreadsNs), float64(s.CPU.ProcessNs)
	return evidenceIf(own > 0 && !t.is.NewPods() && all-own > max(heavyMeter*own, noticeable*float64(s.ElapsedNs)),
		"the meter itself used %.0f%% as much CPU time as the load", 100*(all-own)/own)
}

func (t *trial) describeCPUSteal() string {
	time := t.pathTime()
	share, ok := sample.Share(time[sample.Steal], time.Total())
	return evidenceIf(ok && share > stolen, "a hypervisor took %.1f%% of the path's CPU time", 100*share)
}

// describeCPUThrottling describes any time for which a limit of CPU time stopped the side: even the shortest stop lasts for
// the rest of a period of 100 ms.
func (t *trial) describeCPUThrottling(s *side) string {
	stopped := time.Duration(s.hostDelta().ThrottledNs)
	return evidenceIf(stopped > 0, "a limit of CPU time stopped it for %s within %s (summed over CPUs)",
		stopped, time.Duration(s.ElapsedNs).Round(time.Millisecond))
}

func (t *trial) describeHotCPU(s *side) string {
	stops := s.hostDelta().HotStops
	return evidenceIf(stops > 0, "its processor slowed down because it was hot (%s)", number.Counted(int(stops), "time"))
}

func (t *trial) describeFewSamples() string {
	return evidenceIf(len(t.thin) > 0, "too few values for %s (%d must lie beyond a percentile)", strings.Join(t.thin, ", "), sample.Beyond)
}

func (t *trial) describeFewOperations(s *side) string {
	// The workload sets the number of a ping with an interval and of an open loop. The kernel answers an echo and counts
	// nothing.
	if t.is.Interval > 0 || t.is.Open() || s == t.server && t.is.Kernel() {
		return ""
	}
	return evidenceIf(s.Operations < uint64(fewest*t.is.Concurrency()),
		"only %d operations: those cut by an edge of the window distort rates and service demand", s.Operations)
}

func (t *trial) describeWindowSkew() string {
	if t.client == nil || t.server == nil || t.is.NewPods() {
		return ""
	}
	a, b := t.client.seconds(), t.server.seconds()
	return evidenceIf(math.Abs(a-b) > disagreement*max(a, b), "the client's window took %.3g s, the server's %.3g s", a, b)
}
