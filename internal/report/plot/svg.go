package plot

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// svgTemplate escapes each text according to its place. A separate file includes its colours; a page has them in its
// style sheet.
var svgTemplate = template.Must(template.New("svg").Funcs(template.FuncMap{
	"num": formatCoordinate, "path": pathData, "dash": dashArray, "anchor": textAnchor, "clean": number.Clean[string],
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {{num .D.Width}} {{num .D.Height}}" width="{{num .D.Width}}" height="{{num .D.Height}}" role="img" aria-labelledby="{{.ID}}-t {{.ID}}-d">
<title id="{{.ID}}-t">{{clean .D.Title}}</title><desc id="{{.ID}}-d">{{clean .D.Desc}}</desc>
{{- if .Style}}<style>{{.Style}}</style><rect class="f-paper" width="{{num .D.Width}}" height="{{num .D.Height}}"/>{{end}}
{{- range .D.Groups}}
<g{{if .Series}} data-p="{{.Series}}"{{end}}{{if .Row}} data-row="{{num .Row}}"{{end}}>
{{- if .Tip}}<title>{{clean .Tip}}</title>{{end}}
{{- range .Shapes}}
{{- if eq .Kind 0}}<path class="k-{{.Color}}" fill="none" d="{{path .}}" stroke-width="{{num .Width}}" stroke-linejoin="round"{{with dash .}} stroke-dasharray="{{.}}"{{end}}{{with .Opacity}} opacity="{{.}}"{{end}}/>
{{- else if eq .Kind 1}}<path class="f-{{.Color}}" d="{{path .}}"{{with .Opacity}} opacity="{{.}}"{{end}}/>
{{- else if eq .Kind 2}}<path class="k-{{.Color}}" fill="none" d="{{path .}}" stroke-width="{{num .Width}}" stroke-linecap="round"{{with .Opacity}} opacity="{{.}}"{{end}}/>
{{- else}}{{$a := index .Points 0}}<text class="f-{{.Color}}{{if .Bold}} b{{end}}" x="{{num $a.X}}" y="{{num $a.Y}}" font-size="{{num .Size}}"{{with anchor .Anchor}} text-anchor="{{.}}"{{end}}>{{clean .Text}}</text>
{{- end}}{{end}}</g>
{{- end}}
</svg>
`))

// formatCoordinate formats a coordinate with at most one decimal.
func formatCoordinate(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

// pathData returns the path data of a line, a rectangle or dots. A dot is a line of length 0 with round ends.
func pathData(s Shape) string {
	var b strings.Builder
	switch s.Kind {
	case Fill:
		p, q := s.Points[0], s.Points[1]
		fmt.Fprintf(&b, "M%s %sH%sV%sH%sz", formatCoordinate(p.X), formatCoordinate(p.Y), formatCoordinate(q.X), formatCoordinate(q.Y), formatCoordinate(p.X))
	case Spots:
		for _, p := range s.Points {
			fmt.Fprintf(&b, "M%s %sh0", formatCoordinate(p.X), formatCoordinate(p.Y))
		}
	default:
		for i, p := range s.Points {
			b.WriteString([]string{"M", "L"}[min(i, 1)] + formatCoordinate(p.X) + " " + formatCoordinate(p.Y))
		}
	}
	return b.String()
}

func dashArray(s Shape) string {
	return strings.Join(each.Of(dashes[max(0, s.Dash)%len(dashes)], func(d float64) string { return formatCoordinate(d) }), " ")
}

func textAnchor(a Anchor) string { return [...]string{"", "middle", "end"}[a] }

// svgData is the data for svgTemplate.
type svgData struct {
	D     Drawing
	ID    string
	Style template.CSS
}

// SVG returns d as SVG for a page whose style sheet has Classes and Variables. id must be unique in the page. It fails if
// a shape has too few points.
func SVG(d Drawing, id string) (template.HTML, error) {
	var b bytes.Buffer
	if err := svgTemplate.Execute(&b, svgData{D: d, ID: id}); err != nil {
		return "", fmt.Errorf("chart %q: %w", d.Title, err)
	}
	return template.HTML(b.String()), nil
}

// WriteLight writes d as a separate SVG file in light colours, for places with a background of their own.
func WriteLight(w io.Writer, d Drawing) error {
	return writeSVG(w, d, ":root{"+Variables(Light)+"}"+Classes())
}

// WriteSVG writes d as a separate SVG file in light or dark colours, as the reader prefers.
func WriteSVG(w io.Writer, d Drawing) error {
	return writeSVG(w, d, ":root{"+Variables(Light)+"}@media (prefers-color-scheme:dark){:root{"+Variables(Dark)+"}}"+Classes())
}

func writeSVG(w io.Writer, d Drawing, style string) error {
	if err := svgTemplate.Execute(w, svgData{D: d, ID: "chart", Style: template.CSS(style)}); err != nil {
		return fmt.Errorf("chart %q: %w", d.Title, err)
	}
	return nil
}
