package outcome

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Thresholds of the checks of an open loop.
const (
	// lateTail is the largest acceptable ratio of the sender's lag to the measured times, both as 99th percentiles.
	lateTail = 0.5
	// promptNs is a lag that is acceptable on every path.
	promptNs = 10_000
)

// deriveOpenLoop derives the intended, offered and answered rates of an open loop.
func (t *trial) deriveOpenLoop(c *side) {
	if !t.is.Open() {
		return
	}
	intended := t.is.Rate
	if t.is.Load > 0 {
		intended = t.is.Load * t.c.Capacity
		t.putMetric(metric.Capacity, t.c.Capacity, t.c.Capacity > 0)
	}
	t.putMetric(metric.IntendedRate, intended, intended > 0)
	t.metrics[metric.AnsweredRate] = c.perSecond(float64(c.Operations))
	s := c.Schedule
	if s == nil {
		return
	}
	t.metrics[metric.OfferedRate] = c.perSecond(float64(s.Sent))
	if h := s.Lag; h != nil && h.Count() > 0 {
		// Too few values of the lag need no warning: the times have as many.
		t.derivePercentiles(metric.SendLag, h)
		t.metrics[metric.SendLag+".max"] = float64(h.Max())
	}
}

// deriveStreamGoodput derives the goodput of the stream that runs during the requests.
func (t *trial) deriveStreamGoodput() {
	if t.server != nil && t.server.Beside != nil {
		t.metrics[metric.BesideGoodput] = t.server.perSecond(8 * float64(t.server.Beside.BytesReceived))
	}
}

// schedule returns the client's counts of an open loop, the zero value without one.
func (t *trial) schedule() sample.Schedule {
	if !t.is.Open() || t.client == nil || t.client.Schedule == nil {
		return sample.Schedule{}
	}
	return *t.client.Schedule
}

// fallsShort reports whether n is less than due by more than shortfall and the requests that an edge of the window cuts.
func (t *trial) fallsShort(n, due uint64) bool {
	return float64(n) < (1-shortfall)*float64(due)-float64(slack*t.is.Concurrency())
}

// describeUnsentRequests describes requests that were not sent in time.
func (t *trial) describeUnsentRequests() string {
	s := t.schedule()
	if t.is.NewPods() {
		return evidenceIf(t.fallsShort(s.Sent, s.Due), "%d pods were due in the window and %d were started: the machine could not make pods at this rate", s.Due, s.Sent)
	}
	return evidenceIf(t.fallsShort(s.Sent, s.Due), "%d requests were scheduled in the window and %d went out, late ones included: "+
		"the path or the client's threads could not keep up", s.Due, s.Sent)
}

// describeLateResponses describes responses that did not keep up with the schedule: the times are those of a growing queue.
func (t *trial) describeLateResponses() string {
	s := t.schedule()
	if s.Due == 0 || t.is.NewPods() { // pods do not wait for each other
		return ""
	}
	return evidenceIf(t.fallsShort(t.client.Operations, s.Due), "%d requests were scheduled in the window and %d responses arrived, those to earlier requests included: "+
		"a queue grew, and the times depend on the length of the window", s.Due, t.client.Operations)
}

// describeLateSender describes a tail of the times that the client itself causes.
func (t *trial) describeLateSender() string {
	lag, ok := t.metrics[metric.SendLag+".p99"]
	tail, known := t.metrics[t.is.Times()+".p99"]
	return evidenceIf(ok && known && lag > max(promptNs, lateTail*tail), "1 %% of the requests left %s or more late, and the 99th percentile is %s: the client's busy CPU makes the tail, not the path",
		time.Duration(lag).Round(time.Microsecond/10), time.Duration(tail).Round(time.Microsecond/10))
}

// describeSharedSpin describes two spinning ends on one CPU.
func (t *trial) describeSharedSpin() string {
	client := t.cpusOf(t.client, nil)
	return evidenceIf(t.is.Spin && len(client) == 1 && len(t.cpusOf(t.server, nil)) > 0 && len(t.cpusOf(t.server, client)) == 0,
		"both ends spin on one CPU and yield it to each other: each time includes a switch of threads")
}
