package outcome

import (
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// NewProbe is what one short stream of a throughput search came to. w is the search; the stream was sent at rate, and
// no more than the accepted share of it may be missing for the probe to have held.
func NewProbe(w plan.Throughput, rate float64, client, server *sample.Observation, drops []sample.Drop) result.Probe {
	p := result.Probe{Rate: rate}
	traits := w.Probe(rate).Traits()
	c, s := newSide(traits, client), newSide(traits, server)
	if c == nil || s == nil || s.Datagrams == nil {
		return p
	}
	p.Offered, p.Delivered = c.perSecond(8*c.sent()), s.perSecond(8*s.received())
	p.Lost, p.Expected = s.Datagrams.Lost, s.Datagrams.Expected
	p.Held = p.Expected > 0 && float64(p.Lost) <= w.Loss*float64(p.Expected)
	if l, ok := Locate(client, server, drops); ok {
		p.At, p.Where = l.At, l.String()
	}
	return p
}

// DeriveSearch computes the metrics of a throughput search: those of the stream that confirmed its result, as Derive has
// them, with the throughput in place of goodput and offered load, and with the places of loss at the lowest rate that
// failed: what stands in the way of more.
func DeriveSearch(w plan.Throughput, r result.Record, c Conditions) (map[string]float64, []result.Warning) {
	throughput := Throughput(r.Probes)
	m, warnings := Derive(w.Probe(throughput), r.Client, r.Server, c)
	m[metric.Throughput] = throughput
	if of := m[metric.Goodput]; of > 0 {
		m[metric.PacketRate] *= typical(r.Probes, func(p result.Probe) float64 { return p.Delivered }) / of
	}
	delete(m, metric.Goodput)
	delete(m, metric.OfferedLoad)
	for _, place := range Places {
		delete(m, metric.Loss+"."+place)
	}
	if p, ok := firstFailing(r.Probes); ok {
		m[metric.FirstFailing] = p.Offered
		for place, n := range p.At {
			m[metric.Loss+"."+place] = float64(n) / float64(p.Expected)
		}
	}
	return m, warnings
}

// Throughput is the result of a search that found one, 0 if none was: the median of what the probes that confirmed it
// carried, which are the last ones. If as fast as possible held there is no rate to confirm, and it is the highest that
// two of these probes have carried.
func Throughput(probes []result.Probe) float64 { return typical(probes, result.Probe.Carried) }

// typical is a number of the probes that confirmed the result.
func typical(probes []result.Probe, number func(result.Probe) float64) float64 {
	if len(probes) == 0 {
		return 0
	}
	last := probes[len(probes)-1]
	var list []float64
	for _, p := range probes {
		if p.Held && p.Rate == last.Rate && (p.Confirming || p.Rate == 0) {
			list = append(list, number(p))
		}
	}
	slices.Sort(list)
	n := len(list)
	switch {
	case !last.Confirming || n < 2:
		return 0
	case last.Rate == 0:
		return list[n-2]
	}
	return (list[(n-1)/2] + list[n/2]) / 2
}

// firstFailing returns the probe that failed at the lowest rate above the result; false if none did.
func firstFailing(probes []result.Probe) (result.Probe, bool) {
	var lowest result.Probe
	found := false
	above := Throughput(probes)
	for _, p := range probes {
		if !p.Held && p.Expected > 0 && p.Offered > above && (!found || p.Offered < lowest.Offered) {
			lowest, found = p, true
		}
	}
	return lowest, found
}
