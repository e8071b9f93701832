package explain

import (
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// countedBeside adds to each sampled trial a counted one, in which a program takes ns for each of two runs of a unit of work.
// The machine is half as fast as in the trials.
func countedBeside(recs []result.Record, ns float64) []result.Record {
	var all []result.Record
	for _, r := range recs {
		all = append(all, r)
		if r.Type != result.TypeSampled {
			continue
		}
		r.Type, r.Stacks = result.TypeCounted, nil
		r.Metrics = map[string]float64{metric.ServiceDemand: 2 * 12_000}
		r.Programs = &sample.Programs{Units: 20_500, EmptyNs: 40, List: []sample.Program{
			{Name: "handle_something", Runs: 41_000, Ns: uint64(41_000 * (2*ns + 40))}, // of the machine at half its speed
			{Name: "other", Runs: 3, Ns: 1000},
		}}
		r.Programs.List[0].Name = r.Programs.List[0].Name[:cut]
		all = append(all, r)
	}
	return all
}

// withProgram gives sides a program of an eleventh of their time, which calls another one of a tenth of that.
func withProgram(recs []result.Record) []result.Record {
	for i := range recs {
		if s := recs[i].Stacks; s != nil {
			for slice := range s.Counts {
				n := 0
				for _, samples := range s.Of(slice) {
					n += samples.Samples
				}
				for j := range n / 9 {
					stack := []string{"node-1", "process_backlog", "bpf_prog_08219b7491364280_handle_something"}
					if j%10 == 0 {
						stack = append(stack, "bpf_prog_08219b7491364281_called")
					}
					s.Add(slice, one, stack...)
				}
			}
		}
	}
	return recs
}

// TestPrograms: the kernel's count is put beside the samples by the program's cut name, per unit of work, at the speed of the
// undisturbed machine and without the kernel's readings of the clock. It agrees or not.
func TestPrograms(t *testing.T) {
	for ns, agree := range map[float64]bool{12_000. / 2 / 11: true, 12_000. / 2 / 6: false} {
		a, sides := judged(t, countedBeside(withProgram(records(spending, 12, 60)), ns))
		s := sides[0]
		p := s.Programs
		if p == nil || len(p.List) != 2 || p.Trials != 12 || p.Failed != 0 {
			t.Fatalf("%+v", p)
		}
		first, called := p.List[0], p.List[1]
		want := 2 * ns * s.Demand.Value / 12_000
		if first.Name != "handle_something" || math.Abs(first.Runs-2) > 0.01 || math.Abs(first.Counted.Value/want-1) > 0.01 || called.Name != "called" || called.Runs != 0 {
			t.Errorf("%+v, want %.0f ns", p.List, want)
		}
		if sum := first.Sampled.Value + called.Sampled.Value; math.Abs(p.All.Sampled.Value/sum-1) > 1e-9 || math.Abs(sum/s.Demand.Value-1./11) > 0.01 {
			t.Errorf("sampled %+v of %.0f", p.All, s.Demand.Value)
		}
		if p.Agree != agree {
			t.Errorf("%.0f ns: agree %v: %+v", ns, p.Agree, p.All)
		}
		if d, ok := Between(a, sides[0], sides[1]); !ok || len(d.Changes) == 0 {
			t.Errorf("%+v", d)
		}
	}
}

// TestNotCounted: a failed counted trial is named, and the parts are the same.
func TestNotCounted(t *testing.T) {
	recs := countedBeside(records(spending, 3, 20), 100)
	for i := range recs {
		if r := &recs[i]; r.Type == result.TypeCounted {
			r.Status, r.Error, r.Programs = result.Failed, &result.Failure{Kind: "not counted", Message: "operation not permitted"}, nil
		}
	}
	_, sides := judged(t, recs)
	_, without := judged(t, records(spending, 3, 20))
	p := sides[0].Programs
	if p == nil || p.Failed != 3 || p.Agree || !strings.Contains(p.Failure, "not permitted") {
		t.Errorf("%+v", p)
	}
	if sides[0].Demand != without[0].Demand || len(sides[0].Parts) != len(without[0].Parts) || sides[0].Failed != 0 {
		t.Errorf("%+v, without counted trials %+v", sides[0], without[0])
	}
	if without[0].Programs != nil {
		t.Errorf("%+v", without[0].Programs)
	}
	var c compare.Collector
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
}
