package run

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// pipe is a path that carries so much, behind a sender that can offer so much.
type pipe struct {
	capacity, sender float64
	// accident is the chance that a probe loses something at any rate.
	accident float64
	// starved is the chance that the sender is kept from its CPU and offers a part of what it should.
	starved float64
	// scatter is the deviation of what a probe carries at full speed.
	scatter float64
	r       *rand.Rand
}

func (l pipe) probe(rate float64) result.Probe {
	offered := min(rate, l.sender)
	if rate == 0 {
		offered = l.sender * math.Exp(l.scatter*l.r.NormFloat64())
	}
	if l.r.Float64() < l.starved {
		offered *= l.r.Float64()
	}
	p := result.Probe{Rate: rate, Offered: offered, Delivered: min(offered, l.capacity), Expected: 1e6, Held: true}
	p.Lost = uint64(1e6 * (1 - p.Delivered/offered))
	if p.Lost == 0 && l.r.Float64() < l.accident {
		p.Lost = 1
	}
	p.Held = p.Lost == 0
	return p
}

// drive searches and returns the result with the number of probes; 0 if there is none.
func drive(l pipe, most, least float64) (float64, int) {
	s := newSearch(most, least)
	var probes []result.Probe
	for rate, confirming, ok := s.next(); ok; rate, confirming, ok = s.next() {
		p := l.probe(rate)
		p.Confirming = confirming
		s.recordProbe(p)
		probes = append(probes, p)
	}
	if !s.found {
		return 0, len(probes)
	}
	return outcome.Throughput(probes), len(probes)
}

// TestSearchFinds draws paths: the result is what the path can carry, or the sender offer, and never more.
func TestSearchFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		l := pipe{capacity: math.Pow(10, 6+4*r.Float64()), sender: math.Pow(10, 6+4*r.Float64()), r: r}
		most := 0.0
		if r.IntN(2) == 0 {
			most = math.Pow(10, 6+4*r.Float64())
		}
		want := min(l.capacity, l.sender)
		if most > 0 {
			want = min(want, most)
		}
		got, probes := drive(l, most, 1e4)
		if got > want*1.000001 || got < want*(1-2*finest) {
			t.Fatalf("capacity %g, sender %g, most %g: found %g", l.capacity, l.sender, most, got)
		}
		if probes > 40 {
			t.Fatalf("capacity %g, sender %g, most %g: %d probes", l.capacity, l.sender, most, probes)
		}
	}
}

// TestSearchSurvivesAccidents lets one probe in ten lose something whatever the rate, and one in ten be kept from its
// CPU: the result stays within 5 % of what the path can carry, or the sender offer, nineteen times of twenty.
func TestSearchSurvivesAccidents(t *testing.T) {
	const searches = 1000
	for _, limit := range []pipe{{capacity: 1e9, sender: 3e9}, {capacity: 3e9, sender: 1e9}} {
		off, probes := 0, 0
		for seed := range uint64(searches) {
			l := limit
			l.accident, l.starved, l.r = 0.1, 0.1, rand.New(rand.NewPCG(seed, 9))
			got, n := drive(l, 0, 1e4)
			if got > 1e9 || got < 0.95e9 {
				off++
			}
			probes += n
		}
		t.Logf("%d of %d searches are off; %d probes each", off, searches, probes/searches)
		if off > searches/20 {
			t.Errorf("%+v: %d of %d searches are off by more than 5 %%", limit, off, searches)
		}
	}
}

// TestSearchReturnsToWhatHeld has a machine that is disturbed while the first rates are confirmed, as on a line of 100
// Mbit/s with windows of 200 ms: the search ends within 1 % of what the path can carry, not where it first confirmed.
func TestSearchReturnsToWhatHeld(t *testing.T) {
	for disturbed := range 16 {
		l := pipe{capacity: 93.8e6, sender: 3e9, r: rand.New(rand.NewPCG(1, 1))}
		s := newSearch(0, 1e4)
		var probes []result.Probe
		left := disturbed
		for rate, confirming, ok := s.next(); ok; rate, confirming, ok = s.next() {
			p := l.probe(rate)
			p.Confirming = confirming
			if confirming && left > 0 && p.Held {
				left--
				p.Held, p.Lost = false, 1
			}
			s.recordProbe(p)
			probes = append(probes, p)
		}
		got, failed := outcome.Throughput(probes), lowestFailed(probes)
		if !s.found || got < (1-2*finest)*failed || disturbed < 10 && got < (1-2*finest)*l.capacity {
			t.Errorf("%d disturbed: found %g of %g, %g failed, %d probes", disturbed, got, l.capacity, failed, len(probes))
		}
		t.Logf("%d disturbed: %g, %d probes", disturbed, got, len(probes))
	}
}

// TestFlatOutIsNotBiased: what is carried at full speed is neither more nor less for a path that scatters more. Before,
// of up to six probes the second highest counted: 5 % too much at a scatter of 5 %.
func TestFlatOutIsNotBiased(t *testing.T) {
	for _, scatter := range []float64{0.01, 0.05, 0.1} {
		sum := 0.0
		const searches = 2000
		for seed := range uint64(searches) {
			got, _ := drive(pipe{capacity: 1e12, sender: 1e9, scatter: scatter, r: rand.New(rand.NewPCG(seed, 5))}, 0, 1e4)
			sum += math.Log(got / 1e9)
		}
		if bias := math.Expm1(sum / searches); math.Abs(bias) > 0.1*scatter {
			t.Errorf("scatter %g: %+.1f %%", scatter, 100*bias)
		}
	}
}

// TestZeroLossIsRare: a rate at which every other window loses something is seldom called free of loss. Before, it was
// in 7 of 10 searches.
func TestZeroLossIsRare(t *testing.T) {
	found := 0
	const searches = 1000
	for seed := range uint64(searches) {
		s := newSearch(1e9, 0.5e9)
		r := rand.New(rand.NewPCG(seed, 6))
		for rate, confirming, ok := s.next(); ok; rate, confirming, ok = s.next() {
			p := result.Probe{Rate: rate, Offered: rate, Delivered: rate, Expected: 1e6, Confirming: confirming, Held: true}
			if rate > 0.9e9 && confirming && r.IntN(2) == 0 {
				p.Held, p.Lost = false, 1
			}
			s.recordProbe(p)
		}
		if s.found && s.confirmed > 0.99e9 {
			found++
		}
	}
	if share := float64(found) / searches; share > 0.25 {
		t.Errorf("confirmed in %.0f %%", 100*share)
	}
}

// lowestFailed returns the lowest rate at which as many probes failed as one rate may.
func lowestFailed(probes []result.Probe) float64 {
	failed, lowest := map[float64]int{}, math.Inf(1)
	for _, p := range probes {
		if !p.Held {
			if failed[p.Rate]++; failed[p.Rate] >= plain {
				lowest = min(lowest, p.Offered)
			}
		}
	}
	return lowest
}

// TestSearchEnds has a path that carries nothing, and one that loses something whatever is sent.
func TestSearchEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, l := range map[string]pipe{
		"dead": {capacity: 0, sender: 1e10, r: r}, "lossy": {capacity: 1e10, sender: 1e10, accident: 1, r: r},
	} {
		got, probes := drive(l, 0, 1e4)
		if got != 0 || probes > mostProbes {
			t.Errorf("%s: found %g after %d probes", name, got, probes)
		}
	}
}
