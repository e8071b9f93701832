package plot

// Trips is a time diagram: in each lane a line moves between rows, coloured by activity. All lanes share one time axis.
type Trips struct {
	Title, Desc string
	// Unit is the text of the time axis.
	Unit string
	// Kinds are the activities, in the order of the legend.
	Kinds []TripKind
	Lanes []Trip
	// Finish is the time at which a line crosses all lanes, with FinishName as its text. Without a name no line is drawn.
	// (optional)
	Finish     float64
	FinishName string
}

// TripKind is an activity with its colour.
type TripKind struct {
	Name  string
	Color Color
}

// Trip is one lane: a line that moves between the rows of the lane.
type Trip struct {
	Name string
	// Note is written next to the name.
	Note string
	// Rows are the names of the rows, from top to bottom.
	Rows  []string
	Spans []TripSpan
	// Labels describe stays in a row. A label is drawn after the end of its stay, or omitted if there is no room.
	Labels []TripLabel
}

// TripSpan is a part of a trip: an activity in row Row from time From to time To.
type TripSpan struct {
	Row      int
	From, To float64
	// Kind is an index in Kinds.
	Kind int
	// Tip is shown while the pointer is on the span.
	Tip string
}

// TripLabel is the label of the stay in row Row that ends at time To. The first of Texts that fits is drawn.
type TripLabel struct {
	Row   int
	To    float64
	Texts []string
}

// Sizes of a time diagram.
const (
	tripWidth  = 872.0
	tripLeft   = 84.0
	tripRight  = 18.0
	tripRow    = 18.0
	tripBar    = 11.0
	tripHead   = 23.0
	tripGap    = 9.0
	legendLine = 18.0
)

// Draw draws the legend, the axis and the lanes.
func (p Trips) Draw() Drawing {
	times := []float64{p.Finish, 0}
	for _, l := range p.Lanes {
		for _, s := range l.Spans {
			times = append(times, s.To)
		}
	}
	_, most, _ := finiteBounds(times...)
	x, ticks := linearAxis(0, most, 9)
	x.from, x.to = tripLeft, tripWidth-tripRight
	legend, top := p.drawLegend()
	top += 30
	height := top
	for _, l := range p.Lanes {
		height += l.height()
	}
	d := Drawing{Width: tripWidth, Height: height, Title: p.Title, Desc: p.Desc}
	frame := Group{}
	for _, t := range ticks {
		frame.Shapes = append(frame.Shapes, line(Grid, 1, Point{x.pixel(t), top - 8}, Point{x.pixel(t), height}),
			small(text(Muted, Point{x.pixel(t), top - 13}, tickText(t), Middle)))
	}
	frame.Shapes = append(frame.Shapes, small(text(Muted, Point{0, top - 13}, p.Unit, Start)))
	d.Groups = append(d.Groups, legend, frame)
	if p.FinishName != "" {
		at := x.pixel(p.Finish)
		anchor := Start
		if at+textWidth(p.FinishName, smallSize) > tripWidth {
			anchor = End
		}
		d.Groups = append(d.Groups, Group{Tip: p.FinishName, Shapes: []Shape{
			dashed(line(Accent, 1.5, Point{at, top - 8}, Point{at, height}), 1),
			small(text(Accent, Point{at, top - 27}, p.FinishName, anchor)),
		}})
	}
	y := top
	for _, l := range p.Lanes {
		d.Groups = append(d.Groups, p.drawLane(l, x, y)...)
		y += l.height()
	}
	return d
}

// drawLegend draws the names of the activities that occur. It also returns the height of the legend.
func (p Trips) drawLegend() (Group, float64) {
	used := map[int]bool{}
	for _, l := range p.Lanes {
		for _, s := range l.Spans {
			used[s.Kind] = true
		}
	}
	const swatch, between = 11.0, 16.0
	g, at := Group{}, Point{0, 11}
	for i, k := range p.Kinds {
		if !used[i] {
			continue
		}
		width := swatch + 5 + textWidth(k.Name, textSize)
		if at.X+width > tripWidth {
			at = Point{0, at.Y + legendLine}
		}
		g.Shapes = append(g.Shapes, rect(k.Color, Point{at.X, at.Y - swatch + 2}, Point{at.X + swatch, at.Y + 2}),
			text(Ink, Point{at.X + swatch + 5, at.Y + 1}, k.Name, Start))
		at.X += width + between
	}
	return g, at.Y + 14
}

func (l Trip) height() float64 { return tripHead + tripRow*float64(len(l.Rows)) + tripGap }

// drawLane draws a lane whose top is at the height y.
func (p Trips) drawLane(l Trip, x axis, y float64) []Group {
	head := Group{}
	head.Shapes = append(head.Shapes, line(Grid, 1, Point{0, y + 1}, Point{tripWidth, y + 1}),
		bold(text(Ink, Point{0, y + 16}, l.Name, Start)),
		small(text(Muted, Point{tripWidth - tripRight, y + 16}, l.Note, End)))
	middle := func(row int) float64 { return y + tripHead + tripRow*(float64(row)+0.5) }
	for i, name := range l.Rows {
		head.Shapes = append(head.Shapes, small(text(Muted, Point{tripLeft - 8, middle(i) + 4}, fitText(name, smallSize, tripLeft-8), End)),
			faint(line(Grid, 1, Point{x.from, middle(i)}, Point{x.to, middle(i)}), 0.8))
	}
	groups := []Group{head}
	ways := Group{}
	for i, s := range l.Spans[min(1, len(l.Spans)):] {
		if i++; s.Row != l.Spans[i-1].Row {
			ways.Shapes = append(ways.Shapes, line(Muted, 1, Point{x.pixel(s.From), middle(l.Spans[i-1].Row)}, Point{x.pixel(s.From), middle(s.Row)}))
		}
	}
	groups = append(groups, ways)
	for _, s := range joinSpans(l.Spans) {
		groups = append(groups, Group{Tip: s.Tip, Shapes: []Shape{
			rect(p.Kinds[s.Kind].Color, Point{x.pixel(s.From), middle(s.Row) - tripBar/2}, Point{max(x.pixel(s.To), x.pixel(s.From)+0.6), middle(s.Row) + tripBar/2}),
		}})
	}
	return append(groups, l.drawLabels(x, middle))
}

// joinSpans joins spans of one kind that follow each other in the same row. Otherwise a gap between their rectangles would
// be visible.
func joinSpans(spans []TripSpan) []TripSpan {
	var out []TripSpan
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && out[last].Row == s.Row && out[last].Kind == s.Kind && out[last].To == s.From {
			out[last].To = s.To
			out[last].Tip += "\n" + s.Tip
			continue
		}
		out = append(out, s)
	}
	return out
}

// drawLabels draws the labels for which the row has room. middle returns the height of a row's centre.
func (l Trip) drawLabels(x axis, middle func(int) float64) Group {
	const margin = 5.0
	taken := map[int][]float64{} // the positions in a row where something begins
	for i, s := range l.Spans {
		taken[s.Row] = append(taken[s.Row], x.pixel(s.From))
		if i > 0 { // the line from the previous row crosses the rows in between
			before := l.Spans[i-1].Row
			for row := min(before, s.Row) + 1; row < max(before, s.Row); row++ {
				taken[row] = append(taken[row], x.pixel(s.From))
			}
		}
	}
	g := Group{}
	for _, b := range l.Labels {
		from, room := x.pixel(b.To)+margin, tripWidth
		for _, begin := range taken[b.Row] {
			if begin >= x.pixel(b.To) {
				room = min(room, begin-margin)
			}
		}
		for _, s := range b.Texts {
			if from+textWidth(s, smallSize) <= room {
				g.Shapes = append(g.Shapes, small(text(Muted, Point{from, middle(b.Row) + 4}, s, Start)))
				break
			}
		}
	}
	return g
}
