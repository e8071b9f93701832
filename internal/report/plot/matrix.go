package plot

// Matrix is a heat map of pairs: rows and columns have the same names. A cell is the direction from the name of its row to
// the name of its column.
type Matrix struct {
	Title, Desc string
	Names       []string
	// Cells has a row for each name. A cell without a colour is not drawn.
	Cells [][]HeatCell
}

// matrixWidth is the largest width of a row of cells, in pixels. matrixCell is the largest width of one cell.
const matrixWidth, matrixCell = 720.0, 40.0

// Draw draws the map. If there is room, each column has the end of its name as its heading.
func (p Matrix) Draw() Drawing {
	size := min(matrixCell, matrixWidth/float64(max(1, len(p.Names))))
	labels := namesWidth(labelWidth, p.Names...)
	const head = 22.0
	d := Drawing{Width: labels + size*float64(len(p.Names)), Height: head + size*float64(len(p.Names)), Title: p.Title, Desc: p.Desc}
	written := size >= 2*smallSize
	top := Group{Shapes: []Shape{small(text(Muted, Point{0, head - 8}, "from, to the right", Start))}}
	for j, name := range p.Names {
		if written {
			top.Shapes = append(top.Shapes, small(text(Muted, Point{labels + size*(float64(j)+0.5), head - 8}, nameEnding(name), Middle)))
		}
	}
	d.Groups = append(d.Groups, top)
	for i, name := range p.Names {
		y := head + size*float64(i)
		row := Group{Row: size, Tip: name}
		if size >= smallSize || i%2 == 0 {
			row.Shapes = append(row.Shapes, small(text(Ink, Point{0, y + size/2 + 4}, fitText(name, smallSize, labels-8), Start)))
		}
		for j, c := range p.Cells[i] {
			x := labels + size*float64(j)
			if c.Color == "" {
				continue
			}
			row.Shapes = append(row.Shapes, rect(c.Color, Point{x + 0.5, y + 0.5}, Point{x + size - 0.5, y + size - 0.5}))
			if written && c.Value != "" {
				row.Shapes = append(row.Shapes, small(text(Ink, Point{x + size/2, y + size/2 + 4}, fitText(c.Value, smallSize, size-2), Middle)))
			}
		}
		d.Groups = append(d.Groups, row)
	}
	return d
}

// nameEnding returns the digits at the end of a name. If there are none, it returns the last three bytes.
func nameEnding(name string) string {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if i == len(name) {
		return name[max(0, i-3):]
	}
	return name[i:]
}
