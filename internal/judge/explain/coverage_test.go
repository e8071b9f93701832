package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// place is where a simulated CPU can be: a part, the share of time there, and the receipt of the packet, of which a share is
// the switch's.
type place struct {
	id       string
	share    float64
	receipt  string
	switched float64
}

// places are those of a path over a bridge: the switch is a bridge, too, so that many stacks can be of either.
var places = []place{
	{"socket", 0.25, "", 0}, {"sched", 0.12, "", 0}, {"ip", 0.15, "a\nip_rcv", 0.02}, {"conntrack", 0.08, "a\nip_rcv\nnf_hook_slow", 0},
	{"rules forward", 0.07, "a\nip_rcv\nip_forward", 0}, {"bridge", 0.14, "a\nbr_handle_frame", 0.55}, {"receive", 0.09, "a", 0.3},
	{"xmit", 0.07, "a\nbr_handle_frame\nbr_forward", 0.8}, {"memory", 0.03, "a\nbr_handle_frame\nkfree_skb", 0.4},
}

// gamma draws from a gamma distribution of a shape (Marsaglia and Tsang).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(r.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// drawnTrials are sampled trials of which every fourth follows packets. Shares scatter more than samples do, by a factor.
func drawnTrials(r *rand.Rand, trials, samples int, scatter float64) *sampled {
	out := &sampled{}
	kinds := slices.Concat(places, places) // those of the switch, and the others
	mass := float64(samples-1)/(scatter-1) - 1
	for n := range trials {
		shares, all := make([]float64, len(kinds)), 0.0
		for i, p := range kinds {
			part := 1 - p.switched
			if i < len(places) {
				part = p.switched
			}
			if shares[i] = 0; part > 0 {
				shares[i] = gamma(r, mass*p.share*part)
			}
			all += shares[i]
		}
		t := trial{instance: n, stacks: &sample.Stacks{}}
		s := slice{counts: map[placement]tally{}}
		t.followed = prefixes{}
		count := func(o placement) { x := s.counts[o]; s.counts[o] = tally{x.samples + 1, x.weight + 1} }
		for range samples {
			x := r.Float64() * all
			i := 0
			for ; i < len(kinds)-1 && x >= shares[i]; i++ {
				x -= shares[i]
			}
			p, ofSwitch := kinds[i], i < len(places)
			receipt := p.receipt
			if receipt != "" { // stacks differ further in
				receipt += fmt.Sprint("\nf", r.IntN(6))
			}
			switch {
			case n%sample.FollowEvery != 0 && receipt != "":
				count(placement{p.id, receipt})
			case ofSwitch:
				count(placement{switchPart.ID, ""})
				t.followed.addReceipt(receipt, 1, 1, true)
			default:
				count(placement{p.id, ""})
				t.followed.addReceipt(receipt, 1, 1, false)
			}
		}
		t.slices = []slice{s}
		out.trials = append(out.trials, t)
	}
	return out
}

// truth is the share of a part.
func truth(id string) (sum float64) {
	if id == "bridge and switch" {
		return truth("bridge") + truth(switchPart.ID)
	}
	for _, p := range places {
		switch id {
		case p.id:
			sum += p.share * (1 - p.switched)
		case switchPart.ID:
			sum += p.share * p.switched
		}
	}
	return sum
}

// TestSharesAreHeld: the 95 % intervals of parts hold the truth in at least 93 % of runs, also those of the switch and of
// the parts that every fourth trial separates from it, and also where trials scatter more than samples do.
func TestSharesAreHeld(t *testing.T) {
	for _, c := range []struct {
		trials  int
		scatter float64
	}{{12, 1.01}, {12, 2}, {30, 2}, {4, 1.5}, {8, 1.5}} {
		const runs = 500
		r := rand.New(rand.NewPCG(9, uint64(c.trials)))
		held, width := map[string]int{}, map[string]float64{}
		for range runs {
			s := drawnTrials(r, c.trials, 230, c.scatter)
			units := s.weightedUnits(func(trial, slice) float64 { return 1 })
			all := sharesByGroup(units, ownGroup)
			all["bridge and switch"] = sharesByGroup(units, func(id string) string { return fmt.Sprint(id == "bridge" || id == switchPart.ID) })["true"]
			for id, p := range all {
				x := p.intervalOf(1, 0)
				if x.Low <= truth(id) && truth(id) <= x.High {
					held[id]++
				}
				width[id] += (x.High - x.Low) / 2 / runs
			}
		}
		for id, n := range held {
			t.Logf("%d trials, scatter %g: %s is held in %.1f %% of runs, +-%.4f of %.3f", c.trials, c.scatter, id, 100*float64(n)/runs, width[id], truth(id))
			if float64(n) < 0.93*runs {
				t.Errorf("%d trials, scatter %g: %s is held in %.1f %% of runs", c.trials, c.scatter, id, 100*float64(n)/runs)
			}
		}
	}
}

// TestWholeShare: a part that has all samples of each trial has no error, and no interval that is not a number.
func TestWholeShare(t *testing.T) {
	p := Share{Share: 1}
	if got := p.intervalOf(2, 0); got != (Interval{2, 2, 2}) {
		t.Errorf("%+v", got)
	}
}
