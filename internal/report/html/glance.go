package html

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// uniqueAnchor returns an identifier that is unique in the page, for a table or a cell. It is derived from names, so that
// links remain valid in later reports.
func (b *builder) uniqueAnchor(names string) string {
	id := figure.Slug(names)
	if b.anchors[id]++; b.anchors[id] > 1 {
		id = fmt.Sprintf("%s--%d", id, b.anchors[id])
	}
	return id
}

// addGlance sets the lines about the environment, the answer as bars and the image to share in v. The bars and the image are
// absent if the summary has no table. A failure is kept in b.err.
func (b *builder) addGlance(v *view) {
	if b.d.Summary != nil {
		v.Ground = b.d.Summary.Ground()
	}
	broad, ok := figure.Glance(b.d, b.series, false)
	card, carded := figure.Card(b.d)
	if !ok || !carded {
		return
	}
	narrow, _ := figure.Glance(b.d, b.series, true)
	v.Glance, v.GlanceNarrow = b.svg(broad), b.svg(narrow)
	v.GlanceTitle = b.d.Summary.Title
	v.Ground = append(v.Ground, b.d.Summary.Does()...)
	v.GlanceNote = b.d.Summary.Statistics() + " The line on it is the interval. Blue is the best of a column, pale blue the same, grey undecided or the baseline. Orange is worse: " + shadeStepsText() + ". " + b.d.Validated()
	if s := b.d.Summary; s.Proofs != "" {
		v.GlanceNote += " Proof: " + s.Proofs + "."
	}
	var file bytes.Buffer
	if err := plot.WriteLight(&file, card); err != nil && b.err == nil {
		b.err = err
	}
	v.Card = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(file.Bytes()))
	v.CardName = "cnibench-" + b.d.RunID() + ".svg"
}

// pageIcon returns the page's icon for a browser tab: three bars.
func pageIcon() template.URL {
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 3h5v2H2zM2 7h8v2H2zM2 11h12v2H2z" fill="#2286bd"/></svg>`
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(drawing)))
}

// shadeStepsText returns a text with the ratios to the best above which a bar has the next shade of orange.
func shadeStepsText() string {
	steps := each.Of(figure.Steps[:], func(s float64) string { return fmt.Sprintf("%gx", s) })
	return "its next shades begin at " + strings.Join(steps[:len(steps)-1], ", ") + " and " + steps[len(steps)-1] + " of the best"
}
