package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// A probe of a search measures for a quarter of the window, within these bounds. A probe that confirms measures for
// the whole window: a queue that fills slowly must overflow for the loss to be visible. So a search takes four to eight
// times as long as another trial.
const (
	probeShare    = 4
	shortestProbe = 50 * time.Millisecond
	longestProbe  = 10 * time.Second
)

// kindNoThroughput is the failure of a search that did not find a rate that holds.
const kindNoThroughput = "no throughput"

// probeSpan returns the warm-up and the window of one probe.
func (a attempt) probeSpan(confirming bool) span {
	window := a.wholeSpan().window
	if !confirming {
		window = min(window/probeShare, longestProbe)
	}
	return span{a.plan.Warmup, max(window, shortestProbe)}
}

// searchThroughput searches for the throughput of a path by short streams, one after the other. It returns the
// observations of the last stream at the confirmed rate, and all probes. It fails if no rate is confirmed.
func (a attempt) searchThroughput(ctx context.Context) (seen, error) {
	w := a.workload.Spec.(plan.Throughput)
	least := fewestDatagrams * 8 * float64(w.MessageSize) / a.probeSpan(false).window.Seconds()
	s := newSearch(w.Rate, least)
	var best seen
	for rate, confirming, ok := s.next(); ok; rate, confirming, ok = s.next() {
		a.workload, a.span = w.Probe(rate), a.probeSpan(confirming)
		v, err := a.measureOnce(ctx)
		if err != nil {
			var said *control.Error
			if !errors.As(err, &said) || said.Kind != control.KindNoTraffic { // a stream from which nothing arrived is loss
				return best, err
			}
			a.agents.endAgents(a.ends) // one end may still be in the middle of it
		}
		p := outcome.NewProbe(w, rate, v.client, v.server, v.drops)
		p.Confirming = confirming
		s.recordProbe(p)
		best.probes = append(best.probes, p)
		best.windowNs += int64(a.window)
		if s.confirmed == rate && p.Held {
			best.client, best.server, best.drops, best.apart = v.client, v.server, v.drops, v.apart
		}
	}
	if !s.found {
		return best, fmt.Errorf("%s: %w", a.Workload, &control.Error{Kind: kindNoThroughput, Message: describeFailedSearch(w, best.probes)})
	}
	return best, nil
}

// maxSearchTime returns the longest time that a search takes. delay is the time to set up and to end one probe.
func maxSearchTime(a attempt, delay time.Duration) time.Duration {
	longest := a.probeSpan(true)
	return mostProbes * (longest.warmup + longest.window + delay)
}

// searchMetrics returns the metrics and warnings of a search.
func searchMetrics(w plan.Workload, rec result.Record, x outcome.Conditions) (map[string]float64, []sample.Warning) {
	return outcome.DeriveSearch(w.Spec.(plan.Throughput), rec, x)
}

// describeFailedSearch describes why a search did not find a rate that holds. probes has at least one probe.
func describeFailedSearch(w plan.Throughput, probes []result.Probe) string {
	last := probes[len(probes)-1]
	switch {
	case last.Held:
		return fmt.Sprintf("the sender offers less and less: %s were intended last, %s left it; is the machine busy with something else?",
			number.WithUnit("bit/s", last.Rate), number.WithUnit("bit/s", last.Offered))
	case last.Where == "":
		last.Where = "nothing arrived"
	}
	return fmt.Sprintf("no rate was found at which at most %s of the datagrams are lost; the last of %d tried was %s: %s",
		plan.FormatShare(w.Loss), len(probes), number.WithUnit("bit/s", last.Rate), last.Where)
}
