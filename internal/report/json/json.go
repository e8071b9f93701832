// Package json writes a report for programs: the stable interface of cnibench, schema "cnibench.report/v1".
//
// The object has the keys schema, run, facts, profiles, margin, noise_floor, cells and comparisons, in this order, and
// load_curves if workloads have loads. Cells and comparisons are ordered by metric, workload, path, profile, each on a
// separate line. Values are in the base units of package metric, times in seconds if the key states that. An unknown
// number is null, never 0, NaN or a missing key. Paths and workloads are the words of the command line. Keys may be
// added within this schema; none is removed or changes its meaning. Cells, comparisons and floors are the values of
// package compare, whose tags are the keys.
package json

import (
	"encoding/json"
	"io"

	"github.com/cnibench/cnibench/internal/report"
)

// Render writes the data of d as JSON, or the report of its result if d has no data.
func Render(w io.Writer, d report.Document) error {
	data := d.Data
	if data == nil {
		data = d
	}
	if lined, ok := data.(report.Lined); ok {
		return write(w, lined.Lined())
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(data)
}
