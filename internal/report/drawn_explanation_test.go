package report

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
)

// drawn are the figures of sides and of differences.
func drawn(sides []explain.Side, differences ...explain.Difference) (all []Figure) {
	for _, s := range append(differencePictures(differences), sidePictures(sides, nil)...) {
		all = append(all, s.Figures...)
	}
	return all
}

// side spends so much on two parts.
func side(name plan.Variant, rules, socket float64) explain.Side {
	part := func(id, family string, v float64) explain.Share {
		return explain.Share{Part: explain.Part{ID: id, Family: family, Title: id}, Time: explain.Interval{Value: v, Low: v, High: v}, Share: v / (rules + socket)}
	}
	return explain.Side{
		Case: plan.Case{Profile: name, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}, Unit: "ns/transaction",
		Demand: explain.Interval{Value: rules + socket}, Parts: []explain.Share{part("socket", "transport", socket), part("rules", "netfilter", rules)},
	}
}

// TestExplained: a difference is drawn as steps from one total to the other, profiles as bars of families, and a hostile name
// stays text.
func TestExplained(t *testing.T) {
	a, b := side(plan.VariantOf("canal"), 4000, 8000), side(plan.VariantOf("<script>"), 1000, 8000)
	d := explain.Difference{A: a, B: b, Total: explain.Interval{Value: -3000}, Changes: []explain.Change{
		{Part: explain.Part{ID: "rules", Title: "rules"}, By: explain.Interval{Value: -3000, Low: -3100, High: -2900}, A: 4000, B: 1000},
		{Part: explain.Part{ID: "socket", Title: "socket"}, By: explain.Interval{Value: 0, Low: -100, High: 100}, Noise: true, A: 8000, B: 8000},
	}}
	all := drawn([]explain.Side{a, b}, d)
	if len(all) != 2 || all[0].Kind != "waterfall" || all[1].Kind != "parts" {
		t.Fatalf("figures %+v", all)
	}
	for _, f := range all {
		svg, err := plot.SVG(f.Drawing, "x")
		if err != nil || strings.Contains(string(svg), "<script>") || strings.Contains(string(svg), "NaN") {
			t.Errorf("%s: %v %s", f.Kind, err, svg)
		}
	}
	if got := all[0].Numbers.Rows[0].Cells; strings.Join(got, " ") != "4.00 1.00 -3.00 -3.10 to -2.90" {
		t.Errorf("numbers %q", got)
	}
	if got := all[1].Numbers.Rows[1].Cells; strings.Join(got, " ") != "8.00 1.00 9.00" {
		t.Errorf("numbers %q", got)
	}
}

// TestFamilyColors: a family has one colour on all bars of a page, whatever is largest there, and the legend has only what
// is there.
func TestFamilyColors(t *testing.T) {
	near, far, bare := side(plan.VariantOf("canal"), 4000, 8000), side(plan.VariantOf("canal"), 9000, 8000), side(plan.VariantOf("raw"), 0, 7000)
	near.Path, far.Path, bare.Path = plan.NinePaths[0], plan.NinePaths[1], plan.NinePaths[2]
	bare.Parts = bare.Parts[:1]
	legend := func(f Figure) map[string]plot.Color {
		colors := map[string]plot.Color{}
		for _, g := range f.Drawing.Groups {
			if n := len(g.Shapes); n == 2 && g.Shapes[0].Text == "" && g.Shapes[1].Text != "" {
				colors[g.Shapes[1].Text] = g.Shapes[0].Color
			}
		}
		return colors
	}
	all := drawn([]explain.Side{near, far, bare})
	one, other, third := legend(all[0]), legend(all[1]), legend(all[2])
	if len(one) != 2 || !maps.Equal(one, other) || one["netfilter"] == one["transport"] {
		t.Errorf("legends %v and %v", one, other)
	}
	if len(third) != 1 || third["transport"] != one["transport"] {
		t.Errorf("the bare path's legend %v, others %v", third, one)
	}
}

// TestFlame: frames that are too narrow are left out, and a change has its shade.
func TestFlame(t *testing.T) {
	root := &plot.FlameFrame{Name: "pod", A: 60, B: 40, Below: []*plot.FlameFrame{
		{Name: "less", A: 30, B: 0}, {Name: "more", A: 0, B: 30}, {Name: "tiny", A: 0.01, B: 0},
	}}
	d := plot.Flame{Roots: []*plot.FlameFrame{root}}.Draw()
	if len(d.Groups) != 3 || math.IsNaN(d.Height) || d.Height != 34 {
		t.Fatalf("%d groups, height %v", len(d.Groups), d.Height)
	}
	if d.Groups[1].Shapes[0].Color != plot.Level(4) || d.Groups[2].Shapes[0].Color != plot.Level(-4) {
		t.Errorf("colours %s and %s", d.Groups[1].Shapes[0].Color, d.Groups[2].Shapes[0].Color)
	}
	if empty := (plot.Flame{}).Draw(); len(empty.Groups) != 0 {
		t.Error("a flame graph of nothing has frames")
	}
}

// The heading of a card names all that may be the best, or no profile where nothing differs significantly.
func TestChoice(t *testing.T) {
	stands := func(names ...string) (out []compare.Standing) {
		for _, n := range names {
			var s compare.Standing
			s.Cell.Profile = plan.VariantOf(n)
			out = append(out, s)
		}
		return out
	}
	claim := Conclusion{Claims: make([]compare.Comparison, 1)}
	for want, n := range map[string]Need{
		"a":                         {Standings: stands("a", "b"), Conclusion: claim},
		"a or b":                    {Standings: stands("a", "b", "c"), Near: []string{"b"}, Conclusion: claim},
		"a or 2 more":               {Standings: stands("a", "b", "c", "d"), Near: []string{"b", "c"}, Conclusion: claim},
		"no significant difference": {Standings: stands("a", "b"), Near: []string{"b"}},
		"b":                         {Standings: stands("host", "b"), Pick: 1},
	} {
		if got := n.pickText(n.Standings[n.Pick].Cell.Profile.String()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
