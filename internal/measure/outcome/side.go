package outcome

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// side is one observation with the counts that its workload derives from it.
type side struct {
	*sample.Observation
	is plan.Traits
}

// newSide returns o with its workload's traits. It returns nil if o is nil or has no window, to prevent a division by
// 0.
func newSide(is plan.Traits, o *sample.Observation) *side {
	if o == nil || o.ElapsedNs <= 0 {
		return nil
	}
	return &side{Observation: o, is: is}
}

func (s *side) perSecond(n float64) float64 { return n / (float64(s.ElapsedNs) / 1e9) }

// hostDelta returns the changes of the machine's counters, the zero value without a side or without counters.
func (s *side) hostDelta() sample.HostDelta {
	if s == nil {
		return sample.HostDelta{}
	}
	return hostOf(s.Observation)
}

// hostOf returns the changes of the machine's counters in o, the zero value if o is nil or has none.
func hostOf(o *sample.Observation) sample.HostDelta {
	if o == nil || o.Host == nil {
		return sample.HostDelta{}
	}
	return *o.Host
}

func (s *side) sentBytes() float64     { return float64(s.BytesSent) }
func (s *side) receivedBytes() float64 { return float64(s.BytesReceived) }

func (s *side) failureCount() float64 {
	n := uint64(0)
	for _, count := range s.Errors {
		n += count
	}
	return float64(n)
}

// units returns how many units of work this side counted: transactions, KB of payload, datagrams, or GB of a job. For
// a stream it adds the bytes sent and received. A tool reports its units itself.
func (s *side) units() float64 {
	if s.Tool != nil {
		return s.Tool.Work
	}
	if s.Job != nil {
		return s.sentBytes() / 1e9
	}
	bytes := s.sentBytes() + s.receivedBytes()
	switch s.is.Work {
	case plan.Kilobyte:
		return bytes / 1000
	case plan.Packet:
		return s.datagramsIn(bytes)
	}
	return float64(s.Operations)
}

// datagramsIn returns the number of datagrams of a stream in a number of bytes. For a mix of sizes it is the number of
// operations, if all have one direction.
func (s *side) datagramsIn(bytes float64) float64 {
	if s.is.Mix && !s.is.Bidirectional {
		return float64(s.Operations)
	}
	return bytes / float64(s.is.Message)
}

// direction is one direction of a stream.
type direction struct{ sender, receiver *side }

// directions returns the directions of a stream: one, or both.
func (t *trial) directions() []direction {
	if t.is.Bidirectional {
		return []direction{{t.client, t.server}, {t.server, t.client}}
	}
	return []direction{{t.sender, t.receiver}}
}

func (d direction) sendingSide() *side   { return d.sender }
func (d direction) receivingSide() *side { return d.receiver }

// summedRate returns the sum of number per second over all directions. end selects the side of a direction that is
// counted. It returns false if such a side was not observed.
func (t *trial) summedRate(end func(direction) *side, number func(*side) float64) (sum float64, ok bool) {
	for _, d := range t.directions() {
		s := end(d)
		if s == nil {
			return 0, false
		}
		sum += s.perSecond(number(s))
	}
	return sum, true
}

// deriveGoodputEachWay derives the goodput of each direction.
func (t *trial) deriveGoodputEachWay() {
	if t.server != nil {
		t.metrics[metric.Goodput+".forward"] = t.server.perSecond(8 * t.server.receivedBytes())
	}
	if t.client != nil {
		t.metrics[metric.Goodput+".reverse"] = t.client.perSecond(8 * t.client.receivedBytes())
	}
}

// observation returns the observation of a side, nil without a side.
func (t *trial) observation(s *side) *sample.Observation {
	if s == nil {
		return nil
	}
	return s.Observation
}
