package chart

// Strips is rates over time: a strip for each name, all on one scale, with a line for each trial.
type Strips struct {
	Title, Desc string
	// Unit is that of the rates; time is in seconds since the start of the window.
	Unit string
	Rows []Strip
	// High widens the scale, so that several plots share one; not finite for none. (optional)
	High float64
}

// Strip is the trials of one name.
type Strip struct {
	Name   string
	Series int
	// Trials has the steps of each trial.
	Trials [][]Step
	// Value is the text at the end of the row.
	Value string
}

// Step is a rate that held from one time to another, in seconds.
type Step struct{ From, To, Rate float64 }

const stripHeight = 46.0

// Draw lays the plot out. Every strip begins at 0.
func (p Strips) Draw() Drawing {
	var rates, times []float64
	for _, r := range p.Rows {
		for _, t := range r.Trials {
			for _, s := range t {
				rates, times = append(rates, s.Rate), append(times, s.From, s.To)
			}
		}
	}
	_, high, ok := span(append(rates, p.High)...)
	if !ok || high <= 0 {
		high = 1
	}
	first, last, ok := span(times...)
	if !ok {
		first, last = 0, 1
	}
	x := axis{low: min(0, first), high: last, from: labelWidth, to: plotWidth - valueWidth - 6}
	_, ticks := linear(x.low, x.high, 4)
	d := Drawing{Width: plotWidth, Height: headHeight + stripHeight*float64(len(p.Rows)) + 6, Title: p.Title, Desc: p.Desc}
	frame := Group{Shapes: []Shape{small(text(Muted, Point{0, headHeight - 11}, fit(p.Unit+", each strip 0 to "+tickText(round(high)), smallSize, labelWidth+60), Start))}}
	for _, t := range ticks {
		if t < x.low || t > x.high {
			continue
		}
		at := x.at(t)
		frame.Shapes = append(frame.Shapes, line(Grid, 1, Point{at, headHeight - 6}, Point{at, d.Height}))
		if at > labelWidth+50 { // the unit stands before
			frame.Shapes = append(frame.Shapes, small(text(Muted, Point{at, headHeight - 11}, tickText(t)+" s", Middle)))
		}
	}
	d.Groups = append(d.Groups, frame)
	for i, r := range p.Rows {
		bottom := headHeight + stripHeight*float64(i+1) - 4
		y := axis{low: 0, high: high, from: bottom, to: bottom - stripHeight + 10}
		d.Groups = append(d.Groups, r.draw(x, y))
	}
	return d
}

// round keeps three digits of v.
func round(v float64) float64 {
	if v <= 0 || !finite(v) {
		return v
	}
	step := niceStep(v) / 1000
	return float64(int64(v/step+0.5)) * step
}

func (r Strip) draw(x, y axis) Group {
	color, _ := Series(r.Series)
	g := Group{Series: r.Series, Row: stripHeight, Tip: r.Name + ": " + r.Value}
	middle := (y.from+y.to)/2 + 4
	g.Shapes = append(g.Shapes,
		line(Grid, 1, Point{x.from, y.from}, Point{x.to, y.from}),
		text(Ink, Point{0, middle}, fit(r.Name, textSize, labelWidth-8), Start),
		text(Ink, Point{plotWidth, middle}, fit(r.Value, textSize, valueWidth), End))
	for _, t := range r.Trials {
		var points []Point
		for _, s := range t {
			if finite(s.Rate) {
				points = append(points, Point{x.at(s.From), y.at(s.Rate)}, Point{x.at(s.To), y.at(s.Rate)})
			}
		}
		if len(points) > 0 {
			g.Shapes = append(g.Shapes, faint(line(color, 1.4, points...), 0.6))
		}
	}
	return g
}
