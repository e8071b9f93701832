// Package outcome turns the observations of the two sides of a trial into the reported numbers, and into warnings about
// them.
//
//	client, server sample.Observation ──► Derive ──► metrics by name (package metric), warnings
//
// It is pure and handles one trial at a time. A number that was not measured is absent from the metrics, never 0. Every
// ratio is formed within one side, from counts and times of that side's own window, and only ratios are combined,
// because the two windows are not the same instant.
//
// Read Derive, then demand.go for service demand, and check.go for the warnings. docs/reference/numbers.md defines each
// number.
package outcome

import (
	"strconv"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Conditions describe the place where the trial ran. The zero value means that nothing is known.
type Conditions struct {
	// LineRate is the rate of every node's NIC in bit/s, 0 if nothing limits it.
	LineRate float64
	// MTU is the MTU of the NICs in bytes, 0 if unknown. NIC is their model, "" if unknown.
	MTU int
	NIC plan.NIC
	// IdleBusy and IdleInterrupt are shares (0 to 1) of the time of the path's CPUs, measured before the run: busy, and
	// in interrupts.
	IdleBusy, IdleInterrupt float64
	// IRQApart is true if the kernel excludes interrupt time from the CPU clocks of tasks.
	IRQApart bool
	// IRQUnknown means that the kernel's interrupt accounting is unknown. IRQApart is then false, which may be wrong.
	IRQUnknown bool
	// Capacity is the rate in requests per second of which the workload's Load is a share; 0 if unknown.
	Capacity float64
	// Backends is the number of servers behind the address that the client dials, 0 if unknown.
	Backends int
	// Drops are the drops within the window at the devices of all hosts of the path, both ends included; nil if they
	// could not be read.
	Drops []sample.Drop
	// Churn has the changes during the trial, nil without any.
	Churn *sample.Churn
	// CPUs are the CPUs of the path; empty means all in the observations.
	CPUs []int
	// Apart is true if the two ends are on different machines: CPU 0 of one is not CPU 0 of the other.
	Apart bool
}

// FromFacts returns the Conditions in f; the caller adds LineRate and CPUs.
func FromFacts(f facts.Facts) Conditions {
	irq := f[facts.IRQAccounting] // of several clusters it is a list
	c := Conditions{NIC: plan.NIC(f[facts.NIC]), IRQApart: irq == facts.IRQApart, IRQUnknown: irq != facts.IRQApart && irq != facts.IRQInTask}
	// A fact that is missing or not a number leaves the zero, which means unknown.
	c.MTU, _ = strconv.Atoi(f[facts.MTU])
	c.IdleBusy, _ = strconv.ParseFloat(f[facts.IdleBusy], 64)
	c.IdleInterrupt, _ = strconv.ParseFloat(f[facts.IdleInterrupt], 64)
	return c
}

// trial is the state of one call of Derive.
type trial struct {
	w      plan.Workload
	is     plan.Traits
	client *side
	server *side
	// sender is the client and receiver the server; for a reversed stream it is the other way round.
	sender, receiver *side
	c                Conditions
	metrics          map[string]float64
	// thin names the percentiles with too few values.
	thin []string
}

// Derive computes every metric that the two observations of one trial allow, in base units, and the validity checks
// that fail. An observation may be nil: the metrics that need it are then absent.
func Derive(w plan.Workload, client, server *sample.Observation, c Conditions) (map[string]float64, []sample.Warning) {
	t := &trial{w: w.Normalize(), is: w.Traits(), c: c, metrics: map[string]float64{}}
	t.client, t.server = newSide(t.is, client), newSide(t.is, server)
	t.shareToolWork()
	t.sender, t.receiver = t.client, t.server
	if t.is.Reverse {
		t.sender, t.receiver = t.server, t.client
	}
	if t.clientIsTool() {
		return t.toolOutcome()
	}
	if t.is.Job.Members > 0 {
		deriveSteps(t)
		t.deriveChurn()
		t.deriveUtilization()
		return t.metrics, t.failedChecks()
	}
	switch t.is.Work {
	case plan.Packet:
		t.deriveStream()
		t.deriveDatagrams()
		t.deriveLossPlaces()
	case plan.Kilobyte:
		t.deriveStream()
		t.deriveRetransmits()
	case plan.Request:
		t.deriveRequests()
	case plan.NewPod:
		t.deriveNewPods()
	default:
		if t.is.Names.Given() {
			deriveResolutions(t)
			convertServerQueries(t)
		} else {
			t.deriveTransactions()
		}
	}
	t.deriveDemand()
	t.deriveChurn()
	t.deriveUtilization()
	t.deriveMemory()
	return t.metrics, t.failedChecks()
}

// putMetric records a metric if ok.
func (t *trial) putMetric(name string, value float64, ok bool) {
	if ok {
		t.metrics[name] = value
	}
}

func (t *trial) deriveStream() {
	bytes, ok := t.summedRate(direction.receivingSide, (*side).receivedBytes)
	t.putMetric(metric.Goodput, 8*bytes, ok)
	if t.is.Bidirectional {
		t.deriveGoodputEachWay()
	}
}

func (t *trial) deriveRetransmits() {
	counted := func(d direction) *side {
		if d.sender == nil || d.sender.TCP == nil {
			return nil
		}
		return d.sender
	}
	again, ok := t.summedRate(counted, func(s *side) float64 { return float64(s.TCP.Retransmits) })
	// Both are rates of their own window; their quotient is CPU time per byte.
	if bytes := t.metrics[metric.Goodput] / 8; ok && bytes > 0 {
		t.metrics[metric.RetransmitsPerG] = again / bytes * 1e9
	}
}

func (t *trial) deriveDatagrams() {
	bytes, ok := t.summedRate(direction.sendingSide, (*side).sentBytes)
	t.putMetric(metric.OfferedLoad, 8*bytes, ok)
	if t.receiver == nil {
		return
	}
	packets, ok := t.summedRate(direction.receivingSide, func(s *side) float64 { return s.datagramsIn(s.receivedBytes()) })
	t.putMetric(metric.PacketRate, packets, ok)
	if d := datagramsOf(t.observation(t.client), t.observation(t.server)); d != nil {
		if d.Expected > 0 {
			t.metrics[metric.FrameLossRate] = float64(d.Lost) / float64(d.Expected)
		}
		if d.Received > 1 && d.JitterNs > 0 {
			t.metrics[metric.Jitter] = d.JitterNs
		}
	}
	if h := t.receiver.Transit; h != nil && h.Count() > 0 {
		t.deriveQuantile(metric.PDV, h, 0.999)
	}
}

func (t *trial) deriveTransactions() {
	c := t.client
	if c == nil {
		return
	}
	// The rate of a ping with an interval, or of an open loop, is a setting and not a result.
	if t.is.Interval == 0 && !t.is.Open() {
		t.metrics[metric.TransactionRate] = c.perSecond(float64(c.Operations))
	}
	t.deriveErrorRate(c)
	t.deriveOpenLoop(c)
	t.deriveStreamGoodput()
	t.deriveDistribution(metric.RTT, c.RTT)
	t.deriveDistribution(metric.ConnectTime, c.Connect)
}

func (t *trial) deriveMemory() {
	a, b := t.client.hostDelta().MemoryBytes, t.server.hostDelta().MemoryBytes
	t.putMetric(metric.Memory, float64(a)+float64(b), a > 0 && b > 0)
}
