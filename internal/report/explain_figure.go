package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// sidePictures returns a section with pictures of the parts, one for each path and workload; nil without sides.
func sidePictures(all []explain.Side, s Series) []Section {
	if len(all) == 0 {
		return nil
	}
	families := familiesOf(all)
	return []Section{{ID: "parts", Heading: "Parts of the service demand", Lead: true,
		Figures: each.Of(sidesByCase(all), func(sides []explain.Side) Figure { return partsFigure(sides, families, s) })}}
}

// differencePictures returns a section with a waterfall for each difference, then one with flame graphs. It omits a section
// without figures.
func differencePictures(all []explain.Difference) []Section {
	steps := Section{ID: "waterfall", Heading: "From one to the other", Lead: true, Figures: each.Of(all, waterfallFigure)}
	flames := Section{ID: "flame", Heading: "Functions", Notes: []string{
		"Functions below their callers, as wide as both profiles spend in them together. Blue: the second spends less. Orange: it spends more. Roots are network namespaces: one sampled trial in four follows packets, so that most stacks of the others have none.",
	}}
	for _, x := range all {
		if f, ok := flameFigure(x); ok {
			flames.Figures = append(flames.Figures, f)
		}
	}
	return slices.DeleteFunc([]Section{steps, flames}, Section.isEmpty)
}

// sidesText returns the names of both sides of a difference, and its path.
func sidesText(d explain.Difference) string {
	return fmt.Sprintf("%s to %s, %s", d.A.Name(), d.B.Name(), d.A.Path)
}

// waterfallFigure draws a difference as a waterfall: a step for each part.
func waterfallFigure(d explain.Difference) Figure {
	scale := scaleOf(d)
	total := func(s explain.Side) plot.WaterfallStep {
		return plot.WaterfallStep{Name: s.Name(), Value: scale.Format(s.Demand.Value), By: s.Demand.Value / scale.Size}
	}
	p := plot.Waterfall{
		Title: "from " + sidesText(d) + ", " + d.A.Workload.String(), Unit: scale.Unit, First: total(d.A), Last: total(d.B),
		Desc: "Service demand from one profile to the other, part by part.",
	}
	n := Numbers{Columns: []string{d.A.Name(), d.B.Name(), "change", "interval"}}
	for _, c := range d.Changes {
		n.Rows = append(n.Rows, NumbersRow{Name: number.Clean(c.Title), Cells: []string{
			scale.Format(c.A), scale.Format(c.B), scale.Signed(c.By.Value), scale.Signed(c.By.Low) + " to " + scale.Signed(c.By.High),
		}})
		if !d.Named(c) {
			continue
		}
		p.Steps = append(p.Steps, plot.WaterfallStep{Name: number.Clean(c.Title), Value: scale.Signed(c.By.Value), By: c.By.Value / scale.Size, Faint: c.Noise})
	}
	p.Steps = append(p.Steps, plot.WaterfallStep{Name: "other parts", Value: scale.Signed(d.Rest.By.Value), By: d.Rest.By.Value / scale.Size, Faint: true})
	return Figure{Kind: "waterfall", Heading: sidesText(d), Path: d.A.Path, Workload: d.A.Workload, Drawing: p.Draw(), Numbers: n, Wide: true}
}

// familiesOf returns the families of all parts, in the order of their largest part. A family has the same colour in all
// figures of a page.
func familiesOf(sides []explain.Side) []string {
	return each.Once(each.Of(explain.Common(sides, explain.Side.Times), func(p explain.Part) string { return p.Family }))
}

// partsFigure returns a figure with a bar for each side, split into families of parts. All sides have the same path and
// workload.
func partsFigure(sides []explain.Side, families []string, s Series) Figure {
	scale := number.Common(sides[0].Unit, each.Of(sides, func(x explain.Side) float64 { return x.Demand.Value })...)
	p := plot.Stacked{
		Title: "parts of the service demand, " + sides[0].Workload.String() + ", " + sides[0].Path.String(), Unit: scale.Unit, Parts: families,
		Desc: "A bar for each profile, split into parts.",
	}
	n := Numbers{Columns: append(slices.Clone(families), "sum")}
	for _, x := range sides {
		b := plot.StackedBar{Name: x.Name(), Series: s[x.Profile], Value: scale.Format(x.Demand.Value)}
		row := NumbersRow{Series: s[x.Profile], Name: b.Name}
		for _, family := range families {
			sum := 0.0
			for _, part := range x.Parts {
				if part.Family == family {
					sum += part.Time.Value
				}
			}
			b.Pieces = append(b.Pieces, sum/scale.Size)
			row.Cells = append(row.Cells, scale.Format(sum))
		}
		p.Bars = append(p.Bars, b)
		n.Rows = append(n.Rows, NumbersRow{Series: row.Series, Name: row.Name, Cells: append(row.Cells, b.Value)})
	}
	return Figure{Kind: "parts", Heading: sides[0].Path.String(), Path: sides[0].Path, Workload: sides[0].Workload, Drawing: p.Draw(), Numbers: n}
}

// notFollowed is the name of the root for packets whose network namespace is unknown.
const notFollowed = "packets that were not followed"

// flameFigure merges the stacks of both sides into a flame graph. It returns false if the stacks were not kept.
func flameFigure(d explain.Difference) (Figure, bool) {
	scale := scaleOf(d)
	var root plot.FlameFrame
	at := map[*plot.FlameFrame]map[string]*plot.FlameFrame{}
	add := func(s explain.Side, to func(*plot.FlameFrame) *float64) {
		for _, x := range s.Stacks() {
			f := &root
			for i, name := range x.Frames {
				if i == 0 && name == sample.UnknownSpace {
					name = notFollowed
				}
				if at[f] == nil {
					at[f] = map[string]*plot.FlameFrame{}
				}
				next := at[f][name]
				if next == nil {
					next = &plot.FlameFrame{Name: number.Clean(name)}
					at[f][name], f.Below = next, append(f.Below, next)
				}
				f = next
				*to(f) += x.Share * s.Demand.Value
			}
		}
	}
	add(d.A, func(f *plot.FlameFrame) *float64 { return &f.A })
	add(d.B, func(f *plot.FlameFrame) *float64 { return &f.B })
	a, b := d.A.Name(), d.B.Name()
	var say func([]*plot.FlameFrame)
	say = func(frames []*plot.FlameFrame) {
		for _, f := range frames {
			f.Tip = fmt.Sprintf("%s: %s %s, %s %s %s", f.Name, a, scale.Format(f.A), b, scale.Format(f.B), scale.Unit)
			say(f.Below)
		}
	}
	say(root.Below)
	p := plot.Flame{
		Title: "functions, " + sidesText(d) + ", " + d.A.Workload.String(), Roots: root.Below,
		Desc: fmt.Sprintf("Functions below their callers, as wide as both spend in them. Blue: %s spends less; orange: %s spends more.", b, b),
	}
	return Figure{Kind: "flame", Heading: sidesText(d), Path: d.A.Path, Workload: d.A.Workload, Drawing: p.Draw(), Wide: true, Search: true}, len(root.Below) > 0
}
