package findings

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestPublishedAreSound reads every claim and holds that it names what exists: profiles, and a plan that repeats it.
func TestPublishedAreSound(t *testing.T) {
	all := Published()
	for _, c := range all.Claims {
		names := slices.Concat(c.Similar, slices.Concat(c.Order...))
		if c.Ratio != nil {
			names = append(names, c.Ratio.Profile, c.Ratio.Against)
		}
		if c.Bound != nil {
			names = append(names, c.Bound.Profile)
		}
		for _, n := range names {
			if _, ok := profile.Lookup(n); !ok {
				t.Errorf("%s: there is no profile %q", c.ID, n)
			}
		}
		if m, _ := metric.Lookup(c.Metric); c.Order != nil && m.Better == metric.Neither {
			t.Errorf("%s: %s has no direction", c.ID, c.Metric)
		}
	}
	for _, s := range all.Sources {
		if s.Title == "" || s.Plan == "" || !slices.ContainsFunc(all.Claims, func(c Claim) bool { return c.Source == s.ID }) {
			t.Errorf("source %s lacks a title, a plan or claims", s.ID)
		}
	}
}

// analysis makes cells of rr with the values of one metric by profile and path; NaN is a failed trial.
func analysis(t *testing.T, name string, values map[string][]float64) *compare.Analysis {
	t.Helper()
	var recs []result.Record
	for key, vs := range values {
		who, where, _ := strings.Cut(key, " ")
		path, err := plan.ParsePath(where)
		if err != nil {
			t.Fatal(err)
		}
		w := plan.Workload{Spec: plan.RR{RequestSize: 1024, ResponseSize: 1024}}.Normalize()
		for i, v := range vs {
			r := result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{name: v}}
			r.Trial = plan.Trial{Case: plan.Case{Profile: plan.VariantOf(who), Path: path, Workload: w}, Repetition: i + 1}
			if math.IsNaN(v) {
				r.Status, r.Metrics, r.Error = result.Failed, nil, &result.Failure{Kind: "peer"}
			}
			recs = append(recs, r)
		}
	}
	a, err := compare.Analyse(result.Header{}, recs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// around gives ten values close to v.
func around(v float64) []float64 {
	vs := make([]float64, 10)
	for i := range vs {
		vs[i] = v * (1 + 0.002*float64((i*7)%10-5))
	}
	return vs
}

const where = "pod-to-pod/cross-node"

func TestJudge(t *testing.T) {
	crossNode, err := plan.ParsePath(where)
	if err != nil {
		t.Fatal(err)
	}
	base := Claim{ID: "x", Metric: metric.ServiceDemand, Workload: plan.Workload{Spec: plan.RR{}}, Paths: []plan.Path{crossNode}}
	ratio := func(low, high float64) Claim {
		c := base
		c.Ratio = &Ratio{Profile: "a", Against: "b", Low: low, High: high}
		return c
	}
	order := func(groups ...[]string) Claim { c := base; c.Order = groups; return c }
	similar := func(names ...string) Claim { c := base; c.Similar = names; return c }
	bound := func(most float64) Claim { c := base; c.Bound = &Bound{"a", most}; return c }
	untestable := base
	untestable.Untestable = "because"
	for name, tt := range map[string]struct {
		claim  Claim
		values map[string][]float64
		want   Outcome
		says   string
	}{
		"ratio holds":            {ratio(2, 2), map[string][]float64{"a": around(20), "b": around(10)}, Reproduced, "claimed 2.00x"},
		"ratio in range":         {ratio(1.5, 3), map[string][]float64{"a": around(20), "b": around(10)}, Reproduced, "1.50x to 3.00x"},
		"size is wrong":          {ratio(3.7, 3.7), map[string][]float64{"a": around(20), "b": around(10)}, InPart, "the direction holds, the size does not"},
		"size is open":           {ratio(2, 2), map[string][]float64{"a": {10, 20, 30, 40, 50, 15}, "b": {9, 9, 9, 9, 9, 9}}, InPart, "the direction holds, the size is not decided"},
		"direction alone":        {ratio(0, 1), map[string][]float64{"a": around(9.9), "b": around(10)}, Reproduced, "claimed less than 1.00x"},
		"no direction":           {ratio(1, 0), map[string][]float64{"a": around(10), "b": around(10)}, Inconclusive, "claimed more than 1.00x"},
		"direction turned":       {ratio(1, 0), map[string][]float64{"a": around(10), "b": around(20)}, Contradicted, "claimed more than 1.00x"},
		"other way round":        {ratio(2, 2), map[string][]float64{"a": around(10), "b": around(20)}, Contradicted, "0.5"},
		"wide":                   {ratio(2, 2), map[string][]float64{"a": {10, 20, 30, 40, 50, 15}, "b": {5, 10, 20, 8, 30, 12}}, Inconclusive, "claimed 2.00x"},
		"one repetition":         {ratio(2, 2), map[string][]float64{"a": {20}, "b": {10}}, Inconclusive, "too few repetitions"},
		"a cell is missing":      {ratio(2, 2), map[string][]float64{"a": around(20)}, NotTestable, "not measured: b " + where},
		"lower is better":        {order([]string{"a"}, []string{"b"}), map[string][]float64{"a": around(10), "b": around(20)}, Reproduced, "0.5"},
		"order is wrong":         {order([]string{"a"}, []string{"b"}), map[string][]float64{"a": around(20), "b": around(10)}, Contradicted, "the other way round"},
		"order of equals":        {order([]string{"a"}, []string{"b"}), map[string][]float64{"a": around(10), "b": around(10)}, Contradicted, "no difference beyond"},
		"one of two is wrong":    {order([]string{"a"}, []string{"b", "c"}), map[string][]float64{"a": around(10), "b": around(20), "c": around(5)}, Contradicted, "the other way round"},
		"a group is missing":     {order([]string{"a"}, []string{"b"}, []string{"c"}), map[string][]float64{"a": around(10), "b": around(20)}, InPart, "1 of 3 comparisons measured"},
		"one of a group missing": {order([]string{"a"}, []string{"b", "c"}), map[string][]float64{"a": around(10), "b": around(20)}, InPart, "not measured: c"},
		"one pair of ten":        {similar("a", "b", "c", "d", "e"), map[string][]float64{"a": around(10), "b": around(10)}, InPart, "1 of 10 comparisons measured"},
		"order of one each":      {order([]string{"a"}, []string{"b"}), map[string][]float64{"a": {10}, "b": {20}}, Inconclusive, "too few repetitions"},
		"similar to one":         {similar("a", "b"), map[string][]float64{"a": {10}, "b": {10}}, Inconclusive, "too few repetitions"},
		"similar":                {similar("a", "b", "c"), map[string][]float64{"a": around(10), "b": around(10.3), "c": around(9.8)}, Reproduced, "within 10%"},
		"not similar":            {similar("a", "b"), map[string][]float64{"a": around(10), "b": around(13)}, Contradicted, "within 10%"},
		"bound":                  {bound(11), map[string][]float64{"a": around(10)}, Reproduced, "at most"},
		"bound is broken":        {bound(5), map[string][]float64{"a": around(10)}, Contradicted, "at most"},
		"bound at the edge":      {bound(10), map[string][]float64{"a": around(10)}, Inconclusive, "at most"},
		"untestable":             {untestable, nil, NotTestable, "because"},
	} {
		values := map[string][]float64{}
		for who, vs := range tt.values {
			values[who+" "+where] = vs
		}
		f := Judge(analysis(t, metric.ServiceDemand, values), []Claim{tt.claim})[0]
		if all := strings.Join(f.Evidence, "\n"); f.Outcome != tt.want || !strings.Contains(all, tt.says) {
			t.Errorf("%s: got %s, want %s with %q:\n%s", name, f.Outcome, tt.want, tt.says, all)
		}
	}
}

// TestSurvivors: most trials of a failed, and what is left decides nothing.
func TestSurvivors(t *testing.T) {
	crossNode, err := plan.ParsePath(where)
	if err != nil {
		t.Fatal(err)
	}
	c := Claim{Metric: metric.ServiceDemand, Workload: plan.Workload{Spec: plan.RR{}}, Paths: []plan.Path{crossNode}, Order: [][]string{{"a"}, {"b"}}}
	values := map[string][]float64{"a " + where: around(10), "b " + where: around(20)}
	for range 11 {
		values["a "+where] = append(values["a "+where], math.NaN())
	}
	if f := Judge(analysis(t, metric.ServiceDemand, values), []Claim{c})[0]; f.Outcome != Inconclusive || !strings.Contains(strings.Join(f.Evidence, "\n"), "most trials of one failed") {
		t.Errorf("%+v", f)
	}
}

// TestZeroes judges an order of losses, which have no ratio where there is none.
func TestZeroes(t *testing.T) {
	crossNode, err := plan.ParsePath(where)
	if err != nil {
		t.Fatal(err)
	}
	c := Claim{Metric: metric.FrameLossRate, Workload: plan.Workload{Spec: plan.RR{}}, Paths: []plan.Path{crossNode}, Order: [][]string{{"a"}, {"b"}}}
	none := make([]float64, 10)
	a := analysis(t, metric.FrameLossRate, map[string][]float64{"a " + where: none, "b " + where: around(0.01)})
	if f := Judge(a, []Claim{c})[0]; f.Outcome != Reproduced {
		t.Errorf("loss against none: %+v", f)
	}
	a = analysis(t, metric.FrameLossRate, map[string][]float64{"a " + where: none, "b " + where: none})
	if f := Judge(a, []Claim{c})[0]; f.Outcome != Inconclusive {
		t.Errorf("none against none: %+v", f)
	}
}

func TestReadRefuses(t *testing.T) {
	const head = "sources: [{id: s, title: t}]\nclaims:\n"
	for src, want := range map[string]string{
		"":                        "claims",
		"sources: []\nclaims: []": "claims.yaml:2: claims: the list is empty",
		head + "  - {id: a, source: s, statement: x, boundd: {}}\n  - {id: b, source: q}":                                     "claims.yaml:3: unknown key \"claims.0.boundd\", did you mean \"bound\"?\nclaims.yaml:4: claims.1: claim \"b\": there is no source \"q\"",
		head + "  - {id: a, source: q, statement: x, untestable: y}":                                                          `no source "q"`,
		head + "  - {id: a, source: s, statement: x}":                                                                         "exactly one of",
		head + "  - {id: a, source: s, untestable: y}":                                                                        "no statement",
		head + "  - {id: a, source: s, statement: x, metric: m, workload: r, paths: [p], similar: [a]}":                       `unknown path "p"`,
		head + "  - {id: a, source: s, statement: x, metric: goodput, workload: rr, paths: [" + where + "], similar: [a]}":    "two profiles",
		head + "  - {id: a, source: s, statement: x, metric: m, workload: rr, paths: [" + where + "], order: [[a], [b]]}":     `unknown metric "m"`,
		head + "  - {id: a, source: s, statement: x, metric: goodput, workload: rr, paths: [nowhere], order: [[a], [b]]}":     "nowhere",
		head + "  - {id: a, source: s, statement: x, metric: goodput, workload: rr, paths: [" + where + "], ratio: {low: 2}}": "a ratio needs a profile",
	} {
		if _, err := Read("claims.yaml", strings.NewReader(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(string(published))
	f.Add("claims: [{id: a}]")
	a := &compare.Analysis{}
	f.Fuzz(func(_ *testing.T, s string) {
		if c, err := Read("claims.yaml", strings.NewReader(s)); err == nil {
			Judge(a, c.Claims)
		}
	})
}

// TestPlansMeasureTheClaims holds that the plan of each source has the cells that its claims speak of.
func TestPlansMeasureTheClaims(t *testing.T) {
	all := Published()
	for _, s := range all.Sources {
		name := filepath.Join("..", "..", "..", "examples", s.Plan+".yaml")
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		// Every case of the plan as a trial that finished: what then is missed is not in the plan.
		var recs []result.Record
		for _, c := range p.Cases() {
			r := result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{}}
			r.Trial = plan.Trial{Case: c, Repetition: 1}
			for _, m := range metric.All() {
				r.Metrics[m.Name] = 1
			}
			recs = append(recs, r)
		}
		a, err := compare.Analyse(result.Header{Plan: p}, recs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Claims {
			if c.Source != s.ID || c.Untestable != "" {
				continue
			}
			for _, e := range judgeClaim(a, c).Evidence {
				if strings.HasPrefix(e, "not measured") {
					t.Errorf("%s: %s: %s", s.Plan, c.ID, e)
				}
			}
		}
	}
}

// TestOneOfManyReversed: of many comparisons one is the other way round by chance. It contradicts a claim only by what all
// of them together would show in at most 5 of 100 cases.
func TestOneOfManyReversed(t *testing.T) {
	where := "pod-to-pod/cross-node"
	path, _ := plan.ParsePath(where)
	for profiles, want := range map[int]Outcome{2: Contradicted, 4: Contradicted, 5: Inconclusive} {
		values := map[string][]float64{}
		var order [][]string
		for i := range profiles {
			name := string(rune('a' + i))
			order = append(order, []string{name})
			values[name+" "+where] = around(100 + 50*float64(i))[:5]
		}
		values["b "+where] = around(90)[:5] // better than a, by the smallest p value of five repetitions
		c := Claim{Metric: metric.ServiceDemand, Paths: []plan.Path{path}, Order: order, Workload: plan.Workload{Spec: plan.RR{RequestSize: 1024, ResponseSize: 1024}}}
		if j := judgeClaim(analysis(t, metric.ServiceDemand, values), c); j.Outcome != want {
			t.Errorf("%d profiles: %s, want %s: %v", profiles, j.Outcome, want, j.Evidence)
		}
	}
}
