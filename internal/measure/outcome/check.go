package outcome

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/cpu"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Ids of the warnings, for programs. They are stable.
const (
	SoftnetDrop     = "softnet-drop"
	DeviceDrop      = "device-drop"
	ReceiveBuffer   = "receive-buffer"
	OfferedLoad     = "offered-load-not-reached"
	Disagree        = "counters-disagree"
	AboveLineRate   = "above-line-rate"
	IRQApart        = "irq-apart"
	IRQUnknown      = "irq-unknown"
	KsoftirqdHidden = "ksoftirqd-hidden"
	Errors          = "errors"
	Retransmits     = "retransmits"
	Congestion      = "congestion"
	MeterHeavy      = "meter-heavy"
	CPUSteal        = "cpu-steal"
	CPUThrottled    = "cpu-throttled"
	OtherLoad       = "other-load"
	FewSamples      = "few-samples"
	FewOperations   = "few-operations"
	IdleSoftIRQ     = "idle-softirq"
	WindowSkew      = "window-skew"
	IdleBackend     = "idle-backend"
	Saturated       = "saturated"
	LateSender      = "late-sender"
	SharedSpin      = "shared-spin"
	SilentEnd       = "silent-end"
	ShortDrain      = "short-drain"
	AbsentBackend   = "absent-backend"
	WideGap         = "wide-gap"
)

// Thresholds of the checks, as shares.
const (
	disagreement = 0.05  // between counts that should be equal
	shortfall    = 0.02  // of the offered load, and tolerance of the line rate
	heavyMeter   = 0.1   // of the load's CPU time
	noticeable   = 0.02  // of the window: less CPU time is harmless
	stolen       = 0.01  // of the path's CPU time
	strange      = 0.2   // of the path's CPU time; the kernel counts it in ticks, which is 0.1 either way for a short window
	resent       = 0.001 // of the segments sent
	// fewest is how many operations of a flow or connection make the one cut by an edge of the window a small error (5 %).
	fewest = 20
	// slack is how many units two counts of any size may differ: those in flight at an edge.
	slack = 2
)

// check is one validity check: find returns the evidence of a fault, or "".
type check struct {
	id   string
	find func(*trial) string
}

var checks = []check{
	{SoftnetDrop, (*trial).softnetDrop},
	{DeviceDrop, (*trial).deviceDrop},
	{ReceiveBuffer, (*trial).receiveBuffer},
	{OfferedLoad, (*trial).offeredLoad},
	{Disagree, (*trial).disagree},
	{AboveLineRate, (*trial).aboveLineRate},
	{IRQApart, (*trial).irqApart},
	{IRQUnknown, (*trial).irqUnknown},
	{KsoftirqdHidden, (*trial).ksoftirqdHidden},
	{Errors, (*trial).errors},
	{Retransmits, (*trial).resent},
	{Congestion, (*trial).congestion},
	{MeterHeavy, (*trial).meterHeavy},
	{CPUSteal, (*trial).cpuSteal},
	{CPUThrottled, (*trial).cpuThrottled},
	{OtherLoad, (*trial).otherLoad},
	{FewSamples, (*trial).fewSamples},
	{FewOperations, (*trial).fewOperations},
	{IdleSoftIRQ, (*trial).idleSoftIRQ},
	{WindowSkew, (*trial).windowSkew},
	{IdleBackend, (*trial).idleBackend},
	{Saturated, (*trial).saturated},
	{LateSender, (*trial).lateSender},
	{SharedSpin, (*trial).sharedSpin},
	{SilentEnd, (*trial).silentEnding},
	{ShortDrain, (*trial).shortDrain},
	{AbsentBackend, (*trial).absentBackend},
}

func (t *trial) check() []result.Warning {
	var found []result.Warning
	for _, c := range checks {
		if message := c.find(t); message != "" {
			found = append(found, result.Warning{ID: c.id, Message: message})
		}
	}
	return found
}

// each joins the results of find for both sides, each after the side's name.
func (t *trial) each(find func(*side) string) string {
	var all []string
	for i, s := range []*side{t.client, t.server} {
		if s == nil {
			continue
		}
		if what := find(s); what != "" {
			all = append(all, [...]string{"client: ", "server: "}[i]+what)
		}
	}
	return strings.Join(all, "; ")
}

func (t *trial) softnetDrop() string {
	var dropped uint64
	for _, s := range []*side{t.client, t.server} {
		// Both sides may be on one machine and report the same drops.
		if s != nil && s.Host != nil {
			dropped = max(dropped, s.Host.SoftnetDropped)
		}
	}
	if dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d packets were dropped because a CPU's receive backlog was full (net.core.netdev_max_backlog)", dropped)
}

func (t *trial) deviceDrop() string {
	return t.each(func(s *side) string {
		if s.Host == nil {
			return ""
		}
		return grown(s.Host.Devices, func(counter string) bool {
			return strings.HasSuffix(counter, "_dropped") || strings.HasSuffix(counter, "_errors")
		})
	})
}

// grown lists the wanted counters above 0, by name.
func grown[N int64 | uint64](counters map[string]N, want func(string) bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if n := counters[name]; n > 0 && want(name) {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(list, ", ")
}

func (t *trial) receiveBuffer() string {
	if t.is.Protocol != plan.UDP {
		return ""
	}
	return t.each(func(s *side) string {
		if s.Host == nil || s.Host.SNMP["Udp.RcvbufErrors"] <= 0 {
			return ""
		}
		return fmt.Sprintf("%d datagrams arrived and found the socket's receive buffer full: lost by the application, not by the network",
			s.Host.SNMP["Udp.RcvbufErrors"])
	})
}

func (t *trial) offeredLoad() string {
	if t.is.Open() {
		return t.notSent()
	}
	offered, ok := t.metrics[metric.OfferedLoad]
	intended := t.is.Rate * float64(len(t.directions()))
	if !ok || intended <= 0 || offered >= (1-shortfall)*intended {
		return ""
	}
	return fmt.Sprintf("%.4g bit/s left the sender, %.4g were intended", offered, intended)
}

func (t *trial) disagree() string {
	if t.client == nil || t.server == nil || t.is.Kernel {
		return ""
	}
	what, a, b := t.counts()
	// The two windows differ, so this compares rates. Units in flight at the edges of each flow's window may differ.
	room := float64(slack*t.is.Concurrency()) / min(t.client.seconds(), t.server.seconds())
	if apart := math.Abs(a - b); apart <= disagreement*max(a, b) || apart <= room {
		return ""
	}
	return fmt.Sprintf("%s: %.4g per second by one side, %.4g by the other", what, a, b)
}

// counts returns the numbers that should be equal on both sides, per second of their own windows.
func (t *trial) counts() (what string, a, b float64) {
	switch t.is.Work {
	case plan.Kilobyte:
		a, _ = t.rate(direction.from, (*side).sent)
		b, _ = t.rate(direction.to, (*side).received)
		return "bytes sent and received", a, b
	case plan.Packet:
		a, _ = t.rate(direction.from, func(s *side) float64 { return s.packets(s.sent()) })
		b, _ = t.rate(direction.to, func(s *side) float64 {
			if s.Datagrams == nil {
				return s.packets(s.received())
			}
			return s.packets(s.received()) + float64(s.Datagrams.Lost)
		})
		return "datagrams sent and received or lost", a, b
	}
	return t.is.Work + "s of client and server", t.client.perSecond(t.client.units()), t.server.perSecond(t.server.units())
}

func (s *side) seconds() float64 { return float64(s.ElapsedNs) / 1e9 }

// Bytes of headers in and around an IPv4 packet: a shaper counts them, and payload excludes them.
const (
	ethernetHeader = 14
	tcpHeaders     = 52 // with time stamps
	udpHeaders     = 28
)

func (t *trial) aboveLineRate() string {
	goodput, ok := t.metrics[metric.Goodput]
	if !ok || t.c.LineRate <= 0 {
		return ""
	}
	limit := t.c.LineRate * float64(len(t.directions()))
	if t.c.NIC == "wire" && t.c.MTU > tcpHeaders {
		payload := t.c.MTU - tcpHeaders
		if t.is.Protocol == plan.UDP {
			payload = min(t.is.Message, t.c.MTU-udpHeaders)
			limit *= float64(payload) / float64(payload+udpHeaders+ethernetHeader)
		} else {
			limit *= float64(payload) / float64(t.c.MTU+ethernetHeader)
		}
	}
	if goodput <= (1+shortfall)*limit {
		return ""
	}
	return fmt.Sprintf("goodput of %.4g bit/s is more than the %.4g that a line of %.4g bit/s can carry", goodput, limit, t.c.LineRate)
}

func (t *trial) irqApart() string {
	if !t.c.IRQApart {
		return ""
	}
	if _, ok := t.metrics[metric.KernelCPU]; !ok {
		return "this kernel keeps interrupt time out of the CPU clocks of tasks, and no other source has it: no service demand"
	}
	return "this kernel keeps interrupt time out of the CPU clocks of tasks: it is added from /proc/stat, for the whole CPU and in ticks of 10 ms"
}

func (t *trial) irqUnknown() string {
	if _, ok := t.metrics[metric.ServiceDemand]; !ok || !t.c.IRQUnknown {
		return ""
	}
	return "cannot tell whether this kernel keeps interrupt time out of the CPU clocks of tasks: if it does, service demand lacks it"
}

func (t *trial) ksoftirqdHidden() string {
	_, demand := t.metrics[metric.ServiceDemand]
	_, whole := t.metrics[metric.KernelCPU]
	if t.c.IRQApart || !demand || whole {
		return ""
	}
	return "ksoftirqd is not visible from this end: service demand lacks its CPU time"
}

// idleSoftIRQ reports softirq work that may find its CPU idle: another CPU passes it on, or the timer of a shaper releases
// packets. A kernel without interrupt accounting charges such work to no task and not to ksoftirqd.
func (t *trial) idleSoftIRQ() string {
	if _, ok := t.metrics[metric.ServiceDemand]; !ok || t.c.IRQApart {
		return ""
	}
	client := t.cpusOf(t.client, nil)
	n := len(client) + len(t.cpusOf(t.server, client))
	switch {
	case n > 1:
		return fmt.Sprintf("on a path of %d CPUs, softirq work that finds its CPU idle is charged to no task: service demand is a lower bound", n)
	case t.c.LineRate > 0:
		return "a shaper releases packets on an idle CPU, whose time is charged to no task: service demand is a lower bound"
	}
	return ""
}

func (t *trial) errors() string {
	if t.rolled() {
		return "" // the errors are the result
	}
	return t.each(func(s *side) string { return grown(s.Errors, func(string) bool { return true }) })
}

func (t *trial) resent() string {
	if t.is.Protocol != plan.TCP {
		return ""
	}
	return t.each(func(s *side) string {
		again, out, of := s.segments()
		if again == 0 || again <= resent*out {
			return ""
		}
		return fmt.Sprintf("%.0f of %.0f segments were retransmitted (%s)", again, out, of)
	})
}

// segments returns how many TCP segments a side sent again and in all, and the source of the counters: the flows, or for
// crr the namespace, because its flows do not last.
func (s *side) segments() (again, out float64, of string) {
	switch {
	case s.TCP != nil:
		return float64(s.TCP.Retransmits), float64(s.TCP.SegmentsOut), "flows of this trial"
	case s.Host != nil:
		return float64(s.Host.SNMP["Tcp.RetransSegs"]), float64(s.Host.SNMP["Tcp.OutSegs"]), "all of the namespace"
	}
	return 0, 0, ""
}

func (t *trial) congestion() string {
	return t.each(func(s *side) string {
		if s.TCP == nil || s.TCP.Congestion == "" || s.TCP.Congestion == t.is.Congestion {
			return ""
		}
		return fmt.Sprintf("congestion control is %s instead of %s", s.TCP.Congestion, t.is.Congestion)
	})
}

func (t *trial) meterHeavy() string {
	return t.each(func(s *side) string {
		own, all := float64(s.CPU.ThreadsNs), float64(s.CPU.ProcessNs)
		if own <= 0 || all-own <= heavyMeter*own || all-own <= noticeable*float64(s.ElapsedNs) {
			return ""
		}
		return fmt.Sprintf("the meter itself used %.0f%% as much CPU time as the load", 100*(all-own)/own)
	})
}

func (t *trial) cpuSteal() string {
	time := t.path()
	share, ok := cpu.Share(time[cpu.Steal], time.Total())
	if !ok || share <= stolen {
		return ""
	}
	return fmt.Sprintf("a hypervisor took %.1f%% of the path's CPU time", 100*share)
}

// cpuThrottled reports every stop: even the shortest lasts for the rest of a period of 100 ms.
func (t *trial) cpuThrottled() string {
	return t.each(func(s *side) string {
		if s.Host == nil || s.Host.ThrottledNs <= 0 {
			return ""
		}
		return fmt.Sprintf("a limit of CPU time stopped it for %s within %s (summed over CPUs)",
			time.Duration(s.Host.ThrottledNs), time.Duration(s.ElapsedNs).Round(time.Millisecond))
	})
}

// otherLoad reports other work on the CPUs of the path, such as other pods of a node.
func (t *trial) otherLoad() string {
	time := t.path()
	var ours, threads int64
	for _, s := range []*side{t.client, t.server} {
		if s == nil || s.CPU.ProcessNs <= 0 {
			return ""
		}
		ours += s.CPU.ProcessNs
		if s.Host != nil && s.Host.KsoftirqdNs != nil {
			threads = max(threads, *s.Host.KsoftirqdNs)
		}
	}
	if t.c.IRQApart {
		ours += time.Interrupts() // all of them: the path's own cannot be separated
	}
	share, ok := cpu.Share(cpu.LessIdle(time.Busy(), time.Total(), t.c.IdleBusy)-ours-threads, time.Total())
	if !ok || share <= strange {
		return ""
	}
	return fmt.Sprintf("other work took %.0f%% of the time of the path's CPUs", 100*share)
}

func (t *trial) fewSamples() string {
	if len(t.thin) == 0 {
		return ""
	}
	return fmt.Sprintf("too few values for %s (%d must lie beyond a percentile)", strings.Join(t.thin, ", "), beyond)
}

func (t *trial) fewOperations() string {
	if t.is.Interval > 0 || t.is.Open() {
		return "" // the workload sets the number
	}
	return t.each(func(s *side) string {
		// The kernel answers an echo and counts nothing.
		if s == t.server && t.is.Kernel || s.Operations >= uint64(fewest*t.is.Concurrency()) {
			return ""
		}
		return fmt.Sprintf("only %d operations: those cut by an edge of the window distort rates and service demand", s.Operations)
	})
}

func (t *trial) windowSkew() string {
	if t.client == nil || t.server == nil {
		return ""
	}
	a, b := t.client.seconds(), t.server.seconds()
	if math.Abs(a-b) <= disagreement*max(a, b) {
		return ""
	}
	return fmt.Sprintf("the client's window took %.3g s, the server's %.3g s", a, b)
}
