package chart

import (
	"cmp"
	"slices"
)

// Plane sets cost beside speed: a point for each name with the intervals of both.
type Plane struct {
	Title, Desc  string
	XName, YName string
	Points       []PlanePoint
	// Better says where the good corner is, for example "cheaper and faster"; GoodHigh that it is where y is high.
	Better   string
	GoodHigh bool
}

// PlanePoint is one name; an interval that is not known is NaN.
type PlanePoint struct {
	Name        string
	Series      int
	X, XLow     float64
	XHigh       float64
	Y, YLow     float64
	YHigh       float64
	Description string
}

const (
	planeHeight = 300.0
	planeLeft   = 52.0
	planeRight  = 16.0
)

// Draw lays the plot out. Both axes begin at 0.
func (p Plane) Draw() Drawing {
	var xs, ys []float64
	for _, q := range p.Points {
		xs, ys = append(xs, q.X, q.XHigh, q.XLow), append(ys, q.Y, q.YHigh, q.YLow)
	}
	x, xticks := fromZero(xs)
	y, yticks := fromZero(ys)
	x.from, x.to = planeLeft, plotWidth-planeRight
	y.from, y.to = planeHeight-frameBottom-8, frameTop
	d := Drawing{Width: plotWidth, Height: planeHeight, Title: p.Title, Desc: p.Desc}
	frame := Group{}
	for _, t := range xticks {
		frame.Shapes = append(frame.Shapes, line(Grid, 1, Point{x.at(t), y.from}, Point{x.at(t), y.to}),
			small(text(Muted, Point{x.at(t), y.from + 15}, tickText(t), Middle)))
	}
	for _, t := range yticks {
		frame.Shapes = append(frame.Shapes, line(Grid, 1, Point{x.from, y.at(t)}, Point{x.to, y.at(t)}),
			small(text(Muted, Point{x.from - 5, y.at(t) + 4}, tickText(t), End)))
	}
	corner := y.to + 14
	if !p.GoodHigh {
		corner = y.from - 8
	}
	frame.Shapes = append(frame.Shapes,
		small(text(Muted, Point{0, 12}, p.YName, Start)),
		small(text(Muted, Point{x.to, y.from + 33}, p.XName, End)),
		small(text(Accent, Point{x.from + 6, corner}, "◤ "+p.Better, Start)))
	if !p.GoodHigh {
		frame.Shapes[len(frame.Shapes)-1].Text = "◣ " + p.Better
	}
	d.Groups = append(d.Groups, frame)
	d.Groups = append(d.Groups, p.points(x, y)...)
	return d
}

func fromZero(vs []float64) (axis, []float64) {
	low, high, ok := span(vs...)
	if !ok {
		low, high = 0, 1
	}
	return linear(min(0, low), high, 5)
}

// points draws the crosses, then finds a free place beside each for its name: topmost first.
func (p Plane) points(x, y axis) []Group {
	groups := make([]Group, len(p.Points))
	var taken []box
	order := make([]int, len(p.Points))
	for i, q := range p.Points {
		order[i] = i
		groups[i] = q.cross(x, y)
		px, py := x.at(q.X), y.at(q.Y)
		taken = append(taken, box{px - 6, py - 6, px + 6, py + 6})
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(y.at(p.Points[i].Y), y.at(p.Points[j].Y)) })
	for _, i := range order {
		q := p.Points[i]
		if !finite(q.X) || !finite(q.Y) {
			continue
		}
		at, b := place(Point{x.at(q.X), y.at(q.Y)}, textWidth(q.Name, smallSize), taken)
		taken = append(taken, b)
		groups[i].Shapes = append(groups[i].Shapes, small(text(Ink, at, q.Name, Start)))
	}
	return groups
}

// place finds where a label of that width fits beside a point; if nowhere, right of it.
func place(p Point, width float64, taken []box) (Point, box) {
	var first box
	for ring := 0.0; ring < 5; ring++ {
		up := 4 - 13*ring
		down := 4 + 13*ring
		for i, at := range []Point{
			{p.X + 8, p.Y + up}, {p.X + 8, p.Y + down}, {p.X - 8 - width, p.Y + up}, {p.X - 8 - width, p.Y + down},
			{p.X - width/2, p.Y + up - 10}, {p.X - width/2, p.Y + down + 12},
		} {
			b := box{at.X, at.Y - 10, at.X + width, at.Y + 2}
			if ring == 0 && i == 0 {
				first = b
			}
			inside := b.x0 >= planeLeft && b.x1 <= plotWidth && b.y0 >= 14 && b.y1 <= planeHeight-frameBottom-8
			if inside && !slices.ContainsFunc(taken, b.meets) {
				return at, b
			}
		}
	}
	if first.x1 > plotWidth {
		first.x0, first.x1 = first.x0-width-16, first.x1-width-16
	}
	return Point{first.x0, first.y1 - 2}, first
}

// cross draws the point and its two intervals.
func (q PlanePoint) cross(x, y axis) Group {
	color, _ := Series(q.Series)
	g := Group{Series: q.Series, Tip: q.Name + ": " + q.Description}
	if !finite(q.X) || !finite(q.Y) {
		return g
	}
	c := Point{x.at(q.X), y.at(q.Y)}
	if finite(q.XLow) && finite(q.XHigh) {
		g.Shapes = append(g.Shapes, faint(line(color, 2, Point{x.at(q.XLow), c.Y}, Point{x.at(q.XHigh), c.Y}), 0.6))
	}
	if finite(q.YLow) && finite(q.YHigh) {
		g.Shapes = append(g.Shapes, faint(line(color, 2, Point{c.X, y.at(q.YLow)}, Point{c.X, y.at(q.YHigh)}), 0.6))
	}
	g.Shapes = append(g.Shapes, dots(color, 10, c))
	return g
}
