// Package json writes a report for programs: the stable interface of cnibench, schema "cnibench.report/v1".
//
// The object has the keys schema, run, facts, profiles, margin, noise_floor, cells and comparisons, in this order. The
// keys of report.Subjects follow, such as load_curves if workloads have loads. Cells and comparisons are ordered by metric,
// workload, path, profile, each on a separate line. Values are in the base units of package metric, times in seconds if the
// key states that. An unknown number is null, never 0, NaN or a missing key. Paths and workloads are written as on the
// command line. Later versions may add keys to this schema, but do not remove a key or change its meaning. The keys of
// cells, comparisons and floors are the tags of the types in package compare.
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
		return writeStruct(w, lined.Lined())
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(data)
}
