package plot

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Waterfall is a chart of the steps from a first total to a last total.
type Waterfall struct {
	Title, Desc string
	// Unit is written above the axis.
	Unit        string
	First, Last WaterfallStep
	Steps       []WaterfallStep
}

// WaterfallStep is a change or a total, with the size By. Value is the text at the right. Faint draws the step pale, for a
// change within the noise.
type WaterfallStep struct {
	Name, Value string
	By          float64
	Faint       bool
}

// Sizes of drawings of parts.
const (
	partsWidth = 760.0
	nameWidth  = 240.0
	endWidth   = 70.0
)

// Draw draws the totals and steps from top to bottom.
func (p Waterfall) Draw() Drawing {
	low, high := 0.0, max(p.First.By, p.Last.By)
	for at, i := p.First.By, 0; i < len(p.Steps); i++ {
		at += p.Steps[i].By
		low, high = min(low, at), max(high, at)
	}
	a, ticks := linearAxis(low, high, 6)
	a.from, a.to = nameWidth, partsWidth-endWidth
	rows := float64(len(p.Steps) + 2)
	d := Drawing{Width: partsWidth, Height: headHeight + rowHeight*rows + 8, Title: p.Title, Desc: p.Desc}
	d.Groups = append(d.Groups, Dots{Unit: p.Unit}.drawAxis(a, ticks, d.Height))
	y := headHeight
	bar := func(s WaterfallStep, from, to float64, c Color) {
		shape := rect(c, Point{a.pixel(min(from, to)), y + 3}, Point{max(a.pixel(max(from, to)), a.pixel(min(from, to))+1), y + rowHeight - 3})
		if s.Faint {
			shape = faint(shape, 0.4)
		}
		d.Groups = append(d.Groups, Group{Row: rowHeight, Tip: s.Name + ": " + s.Value, Shapes: []Shape{
			text(Ink, Point{0, y + 15}, fitText(s.Name, textSize, nameWidth-8), Start), shape,
			small(text(Muted, Point{partsWidth, y + 15}, s.Value, End)),
		}})
		y += rowHeight
	}
	total, _ := Series(1)
	bar(p.First, 0, p.First.By, total)
	at := p.First.By
	for _, s := range p.Steps {
		c := BarWorse(1)
		if s.By < 0 {
			c = BarSame
		}
		bar(s, at, at+s.By, c)
		at += s.By
	}
	bar(p.Last, 0, p.Last.By, total)
	return d
}

// Stacked is a chart of bars that consist of pieces. The bars are below each other and share one scale.
type Stacked struct {
	Title, Desc string
	Unit        string
	// Parts are the names of the parts, in the order of Pieces. The legend omits a part that is 0 in all bars.
	Parts []string
	Bars  []StackedBar
}

// StackedBar is one bar. Pieces has the length of each part; 0 draws nothing. Value is the text at the right.
type StackedBar struct {
	Name   string
	Series int
	Pieces []float64
	Value  string
}

// Draw draws the bars, and a legend below them.
func (p Stacked) Draw() Drawing {
	high := 0.0
	for _, b := range p.Bars {
		sum := 0.0
		for _, v := range b.Pieces {
			sum += v
		}
		high = max(high, sum)
	}
	a, ticks := linearAxis(0, high, 4)
	a.from = namesWidth(labelWidth, each.Of(p.Bars, func(b StackedBar) string { return b.Name })...)
	a.to = plotWidth - valueWidth - 6
	const perLine = 2
	named := p.usedParts()
	legend := math.Ceil(float64(len(named)) / perLine)
	bottom := headHeight + rowHeight*float64(len(p.Bars)) + 8
	d := Drawing{Width: plotWidth, Height: bottom + 20*legend + 8, Title: p.Title, Desc: p.Desc}
	d.Groups = append(d.Groups, Dots{Unit: p.Unit}.drawAxis(a, ticks, bottom))
	for i, b := range p.Bars {
		y := headHeight + rowHeight*float64(i)
		d.Groups = append(d.Groups, Group{Series: b.Series, Shapes: []Shape{
			text(Ink, Point{0, y + 15}, fitText(b.Name, textSize, a.from-8), Start), small(text(Muted, Point{plotWidth, y + 15}, b.Value, End)),
		}})
		at := 0.0
		for j, v := range b.Pieces {
			d.Groups = append(d.Groups, Group{Series: b.Series, Tip: b.Name + ", " + p.Parts[j] + ": " + tickText(math.Round(v*1000)/1000) + " " + p.Unit, Shapes: []Shape{
				pieceRect(j, Point{a.pixel(at), y + 3}, Point{a.pixel(at + v), y + rowHeight - 3}),
			}})
			at += v
		}
	}
	for i, j := range named {
		x, y := float64(i%perLine)*plotWidth/perLine, bottom+20*math.Floor(float64(i)/perLine)
		d.Groups = append(d.Groups, Group{Shapes: []Shape{
			pieceRect(j, Point{x, y}, Point{x + 14, y + 12}), small(text(Ink, Point{x + 20, y + 11}, fitText(p.Parts[j], smallSize, plotWidth/perLine-26), Start)),
		}})
	}
	return d
}

// usedParts returns the indexes of the parts that have a piece in any bar.
func (p Stacked) usedParts() []int {
	var out []int
	for j := range p.Parts {
		if slices.ContainsFunc(p.Bars, func(b StackedBar) bool { return b.Pieces[j] != 0 }) {
			out = append(out, j)
		}
	}
	return out
}

// pieceRect returns a rectangle in the colour of a part. Parts beyond the number of colours reuse the colours, paler.
func pieceRect(part int, from, to Point) Shape {
	c, again := Series(part + 1)
	s := rect(c, from, to)
	if again > 0 {
		s = faint(s, 0.45)
	}
	return s
}

// Flame is a flame graph of two sides, A and B, with callers above the functions that they call. The width of a frame is
// the time that both sides spend in the function and below it.
type Flame struct {
	Title, Desc string
	Roots       []*FlameFrame
}

// FlameFrame is a function under its callers. A and B are the times that each side spends in the function and below it.
type FlameFrame struct {
	Name, Tip string
	A, B      float64
	Below     []*FlameFrame
}

const (
	flameWidth  = 1180.0
	flameHeight = 17.0
	// narrowest is the width of the narrowest frame that is drawn.
	narrowest = 1.5
)

// Draw draws the frames. A frame is blue if B spends less, orange if B spends more.
func (p Flame) Draw() Drawing {
	total := 0.0
	for _, r := range p.Roots {
		total += r.A + r.B
	}
	d := Drawing{Width: flameWidth, Title: p.Title, Desc: p.Desc}
	deepest := 0
	var draw func(frames []*FlameFrame, x float64, depth int)
	draw = func(frames []*FlameFrame, x float64, depth int) {
		for _, f := range frames {
			w := (f.A + f.B) / total * flameWidth
			if w >= narrowest {
				deepest = max(deepest, depth+1)
				y := float64(depth) * flameHeight
				g := Group{Tip: f.Tip, Shapes: []Shape{rect(f.color(), Point{x, y}, Point{x + w - 0.5, y + flameHeight - 1})}}
				if w > 30 {
					g.Shapes = append(g.Shapes, small(text(Ink, Point{x + 3, y + 12.5}, fitText(f.Name, smallSize, w-4), Start)))
				}
				d.Groups = append(d.Groups, g)
				draw(f.Below, x, depth+1)
			}
			x += w
		}
	}
	if total > 0 {
		draw(p.Roots, 0, 0)
	}
	d.Height = float64(deepest) * flameHeight
	return d
}

// color returns the shade of a frame, which depends on the difference between A and B relative to their sum.
func (f *FlameFrame) color() Color {
	change := (f.A - f.B) / (f.A + f.B)
	return Level(int(math.Round(change * Levels)))
}
