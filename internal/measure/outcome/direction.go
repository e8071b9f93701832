package outcome

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// direction is one direction of a stream.
type direction struct{ sender, receiver *side }

// directions returns the directions of a stream: one, or both.
func (t *trial) directions() []direction {
	if t.is.Bidirectional {
		return []direction{{t.client, t.server}, {t.server, t.client}}
	}
	return []direction{{t.sender, t.receiver}}
}

func (d direction) from() *side { return d.sender }
func (d direction) to() *side   { return d.receiver }

// rate adds up a number per second of one end of every direction; false if an end was not observed.
func (t *trial) rate(end func(direction) *side, number func(*side) float64) (sum float64, ok bool) {
	for _, d := range t.directions() {
		s := end(d)
		if s == nil {
			return 0, false
		}
		sum += s.perSecond(number(s))
	}
	return sum, true
}

// eachWay derives the goodput of each direction.
func (t *trial) eachWay() {
	if t.server != nil {
		t.metrics[metric.Goodput+".forward"] = t.server.perSecond(8 * t.server.received())
	}
	if t.client != nil {
		t.metrics[metric.Goodput+".reverse"] = t.client.perSecond(8 * t.client.received())
	}
}

// observation returns a side's observation, or nil.
func (t *trial) observation(s *side) *sample.Observation {
	if s == nil {
		return nil
	}
	return s.Observation
}
