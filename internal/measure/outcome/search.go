package outcome

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// gap is the largest distance of the confirmed rate from the lowest rate that failed, as a share of the latter. It is
// the resolution of the search, with room for rounding.
const gap = 0.0105

// NewProbe returns the result of one short stream of the throughput search w, sent at rate. The probe held if at most
// the accepted share was lost.
func NewProbe(w plan.Throughput, rate float64, client, server *sample.Observation, drops []sample.Drop) result.Probe {
	p := result.Probe{Rate: rate}
	traits := w.Probe(rate).Traits()
	c, s := newSide(traits, client), newSide(traits, server)
	if c == nil || s == nil || s.Datagrams == nil {
		return p
	}
	p.Offered, p.Delivered = c.perSecond(8*c.sentBytes()), s.perSecond(8*s.receivedBytes())
	d := datagramsOf(client, server)
	p.Lost, p.Expected = d.Lost, d.Expected
	p.Held = p.Expected > 0 && float64(p.Lost) <= w.Loss*float64(p.Expected)
	if l, ok := locateLosses(client, server, drops); ok {
		p.At, p.Where = l.At, l.String()
	}
	return p
}

// DeriveSearch computes the metrics of a throughput search: those of the stream that confirmed its result, as from
// Derive. The throughput replaces goodput and offered load. The places of loss are from the lowest rate that failed,
// because these limit the throughput.
func DeriveSearch(w plan.Throughput, r result.Record, c Conditions) (map[string]float64, []sample.Warning) {
	throughput := Throughput(r.Probes)
	m, warnings := Derive(w.Probe(throughput), r.Client, r.Server, c)
	m[metric.Throughput] = throughput
	if of := m[metric.Goodput]; of > 0 {
		m[metric.PacketRate] *= confirmedMedian(r.Probes, func(p result.Probe) float64 { return p.Delivered }) / of
	}
	delete(m, metric.Goodput)
	delete(m, metric.OfferedLoad)
	for _, place := range places {
		delete(m, metric.Loss+"."+place)
	}
	if p, ok := firstFailing(r.Probes); ok {
		m[metric.FirstFailing] = p.Offered
		for place, n := range p.At {
			m[metric.Loss+"."+place] = float64(n) / float64(p.Expected)
		}
	}
	if why := describeWideGap(r.Probes); why != "" {
		warnings = append(warnings, sample.Warning{ID: idWideGap, Message: why})
	}
	return m, warnings
}

// Throughput returns the result of a search in bit/s, 0 without one. It is the median rate that the probes at the highest
// confirmed rate carried. If the search ended at full speed, it is the median of the probes at full speed.
func Throughput(probes []result.Probe) float64 { return confirmedMedian(probes, result.Probe.Carried) }

// confirmedMedian returns the median of a number over the probes that confirmed the result, 0 without a result.
func confirmedMedian(probes []result.Probe, number func(result.Probe) float64) float64 {
	rate, ok := confirmedRate(probes)
	if !ok {
		return 0
	}
	confirming := each.Where(probes, func(p result.Probe) bool { return p.Held && p.Rate == rate && (p.Confirming || rate == 0) })
	list := each.Of(confirming, number)
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// confirmedRate returns the highest rate at which two confirming probes held, 0 if the search ended at full speed. It
// returns false if the search has no result.
func confirmedRate(probes []result.Probe) (rate float64, ok bool) {
	held := map[float64]int{}
	full := len(probes) > 0 && probes[len(probes)-1].Rate == 0
	for _, p := range probes {
		if p.Held && (full && p.Rate == 0 || !full && p.Rate > 0 && p.Confirming) {
			if held[p.Rate]++; held[p.Rate] > 1 {
				rate, ok = max(rate, p.Rate), true
			}
		}
	}
	return rate, ok
}

// describeWideGap describes why the result of a search is more than gap below the lowest rate that failed; "" if it is not.
func describeWideGap(probes []result.Probe) string {
	found, ok := confirmedRate(probes)
	if !ok || found == 0 {
		return ""
	}
	last := probes[len(probes)-1]
	failing, failed := firstFailing(probes)
	if lowest := cmp.Or(failing.Rate, failing.Offered); failed && lowest-found > gap*lowest {
		why := fmt.Sprintf("the search ended after %d probes", len(probes))
		if last.Held && last.Rate != found {
			why = fmt.Sprintf("the sender offered %s where %s were intended", formatBitRate(last.Offered), formatBitRate(last.Rate))
		}
		return fmt.Sprintf("%s were confirmed and %s failed, more than %.0f %% apart: %s",
			formatBitRate(found), formatBitRate(lowest), 100*gap, why)
	}
	return ""
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
