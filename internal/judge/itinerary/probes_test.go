package itinerary

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// world is a path that is simulated: what its steps take, what its probes cost, and what the machine does meanwhile.
type world struct {
	// steps are the times between events in ns, took is that of each event's probe, call what it costs besides.
	steps, took []float64
	call        float64
	// outside is the client's calls around the journey, hidden what the client alone sees in windows with all probes.
	outside, hidden float64
	// noise is the deviation of a transaction, drift that of a round, both as a share; late is the share of transactions
	// that another program makes twice as long.
	noise, drift, late float64
	rounds, each       int
}

// inVain is the event before which two probes note nothing.
const inVain = 7

// path has as many events as a bridge with a tunnel.
func path(r *rand.Rand) world {
	w := world{call: 55, outside: 350, noise: 0.02, drift: 0.01, late: 0.1, rounds: 10, each: 24}
	for range 40 {
		w.steps, w.took = append(w.steps, 20+300*r.Float64()), append(w.took, 40+30*r.Float64())
	}
	return w
}

func (w world) total() (sum float64) {
	for _, ns := range w.steps[1:] {
		sum += ns
	}
	return sum
}

// event returns the event of step n. Its host and point follow from its place: both ends are seen in windows that have
// probes there alone.
func (w world) event(n int) journey.Event {
	last := len(w.steps) - 1
	e := journey.Event{Host: "client", Point: journey.Transmit, Index: uint32(n), Length: 1, Direction: journey.Response, Took: uint16(w.took[n])}
	switch n {
	case 0:
		e.Point, e.Direction = journey.Send, journey.Request
	case last:
		e.Point = journey.Deliver
	}
	return e
}

// window simulates transactions. probed says which events have a probe.
func (w world) window(r *rand.Rand, clock *uint64, number *uint32, speed float64, probed func(n int) bool, all bool) (journey.Window, []journey.Event) {
	out := journey.Window{From: *clock, RTT: sample.NewHistogram(), Rate: 1e4}
	var events []journey.Event
	for range w.each {
		*number++
		factor := speed * (1 + w.noise*math.Abs(r.NormFloat64()))
		if r.Float64() < w.late {
			factor *= 1 + r.Float64()
		}
		at := float64(*clock) + factor*w.outside/2
		began := float64(*clock)
		for n := range w.steps {
			if n > 0 {
				at += factor * w.steps[n]
			}
			if probed(n) {
				e := w.event(n)
				if n == inVain {
					e.Vain = 2
					at += factor * 2 * w.call
				}
				e.Time, e.Transaction = uint64(at), *number
				events = append(events, e)
				at += factor * (w.took[n] + w.call)
			}
		}
		at += factor * w.outside / 2
		if all {
			at += w.hidden
		}
		out.RTT.Record(int64(at - began))
		*clock = uint64(at) + 1000
	}
	out.To = *clock
	return out, events
}

// trace simulates a run.
func (w world) trace(r *rand.Rand) journey.Trace {
	t := journey.Trace{Client: "client", Server: "server", Hosts: []journey.Host{{Name: "client"}}}
	clock, number := uint64(1e6), uint32(0)
	last := len(w.steps) - 1
	for range w.rounds {
		speed := 1 + w.drift*r.NormFloat64()
		var x journey.Round
		var ends, all []journey.Event
		x.Plain, _ = w.window(r, &clock, &number, speed, func(int) bool { return false }, false)
		x.Ends, ends = w.window(r, &clock, &number, speed, func(n int) bool { return n == 0 || n == last }, false)
		x.All, all = w.window(r, &clock, &number, speed, func(int) bool { return true }, true)
		t.Rounds, t.Events, t.Ends = append(t.Rounds, x), append(t.Events, all...), append(t.Ends, ends...)
	}
	return t
}

// TestLessProbes: of a path with known steps and probes, each step less its probe is what it was, and the total meets the
// round trip without probes. With them it is nearly twice as long.
func TestLessProbes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := path(r)
	w.noise, w.drift, w.late = 0.002, 0.002, 0
	i, err := Of(w.trace(r))
	if err != nil {
		t.Fatal(err)
	}
	p := i.Probes
	if p.Unknown != "" || !p.Meets || math.Abs(p.Total.Value/w.total()-1) > 0.01 || math.Abs(p.Call.Value-w.call) > 3 || math.Abs(p.Outside.Value-w.outside) > 60 {
		t.Errorf("total %.0f ns, want %.0f: %+v", p.Total.Value, w.total(), p)
	}
	if math.Abs(i.Total.Median-p.Total.Value) > 1 || i.Probed < 1.5*i.Total.Median {
		t.Errorf("the total is %+v, with probes %.0f, and %+v by the rounds", i.Total, i.Probed, p.Total)
	}
	for n, s := range i.Steps {
		if n > 0 && math.Abs(s.After.Median-w.steps[n]) > 6 {
			t.Errorf("step %d takes %.0f ns, want %.0f", n, s.After.Median, w.steps[n])
		}
	}
}

// TestLessProbesIntervals: 95 % intervals of the total less its probes hold the truth in at least 93 % of runs, and so do
// those of the difference to the round trip without probes.
func TestLessProbesIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const runs = 120
	total, off, width := 0, 0, 0.0
	for range runs {
		w := path(r)
		x := w.trace(r)
		p := probesOf(x)
		if p.Unknown != "" {
			t.Fatal(p.Unknown)
		}
		// Undisturbed transactions have the median of the noise, too.
		if p.Total.contains(w.total() * (1 + usual*w.noise)) {
			total++
		}
		if p.Meets {
			off++
		}
		width += (p.Off.High - p.Off.Low) / 2 / p.Unprobed.Value / runs
	}
	t.Logf("the total is held in %d of %d runs, the difference in %d; it is known to %.1f %% of the round trip", total, runs, off, 100*width)
	if total < runs*93/100 || off < runs*93/100 || width > 0.03 {
		t.Errorf("the total is held in %d of %d runs, the difference in %d; it is known to %.1f %% of the round trip", total, runs, off, 100*width)
	}
}

// usual is the median of the size of a normal deviation.
const usual = 0.674

func probesOf(x journey.Trace) Probes {
	ways, _ := completeTransactions(x, x.Events)
	ends, _ := completeTransactions(x, x.Ends)
	return estimateProbeCost(x, newFollowed(ways, x.Rounds, func(r journey.Round) journey.Window { return r.All }),
		newFollowed(ends, x.Rounds, func(r journey.Round) journey.Window { return r.Ends }))
}

// TestDoesNotMeet: what probes cost beyond what they tell is said.
func TestDoesNotMeet(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := path(r)
	w.hidden = -1500
	if p := probesOf(w.trace(r)); p.Meets || math.Abs(p.Off.Value+1500) > 300 {
		t.Errorf("1.5 us are missing: %+v", p)
	}
}

// TestProbesUnknown: without what the cost needs, the probes stay in every time, with the reason.
func TestProbesUnknown(t *testing.T) {
	for want, change := range map[string]func(*journey.Trace){
		"no tracepoint at the end": func(x *journey.Trace) { x.Ends = nil },
		"3 rounds":                 func(x *journey.Trace) { x.Rounds = x.Rounds[:3] },
		"7 transactions were not":  func(x *journey.Trace) { x.Rounds[2].All.Passed = 7 },
		"too few transactions": func(x *journey.Trace) {
			for n := range x.Rounds {
				x.Rounds[n].Ends = journey.Window{}
			}
		},
	} {
		r := rand.New(rand.NewPCG(7, 8))
		x := path(r).trace(r)
		change(&x)
		i, err := Of(x)
		if err != nil || !strings.Contains(i.Probes.Unknown, want) || i.Total.Median != i.Probed || i.Steps[1].Probe != 0 {
			t.Errorf("want %q: %+v, %v", want, i.Probes, err)
		}
	}
}

// TestProbesSaveTime: windows with probes that are faster than those without, by the client's clock or by that of the
// probes, show a machine that changed meanwhile. No cost is known then, least of all a negative one.
func TestProbesSaveTime(t *testing.T) {
	for name, change := range map[string]func(*world){
		"by the client's clock": func(w *world) { w.hidden = -1e4 },
		"by the probes' clock":  func(w *world) { w.call = -60 },
	} {
		r := rand.New(rand.NewPCG(9, 9))
		w := path(r)
		change(&w)
		i, err := Of(w.trace(r))
		if err != nil || !strings.Contains(i.Probes.Unknown, "the machine changed between the windows") || i.Probes.Sum.Value != 0 || i.Total.Median != i.Probed {
			t.Errorf("%s: %+v, %v", name, i.Probes, err)
		}
	}
}
