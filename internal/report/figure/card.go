package figure

import (
	"errors"
	"io"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
)

// RenderCard writes a report as an image to share: an SVG of 1200 by 630 pixels with the answer as bars. It fails for a
// document that answers no need.
func RenderCard(w io.Writer, d report.Document) error {
	picture, ok := Card(d)
	if !ok {
		return errors.New("report as a card: the result answers no need; -f html shows what it has")
	}
	return plot.WriteLight(w, picture)
}
