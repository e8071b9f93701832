package openmetrics

import (
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// base is a base unit of OpenMetrics: how names end in it, and how many of our unit it is.
type base struct {
	unit string
	// size divides a value, so that decimal fractions come out as they are written.
	size float64
}

// bases are the units of the catalogue in OpenMetrics' base units: seconds, bytes and ratios.
var bases = map[string]base{
	"ns":             {"seconds", 1e9},
	"ns/transaction": {"seconds_per_transaction", 1e9},
	"ns/request":     {"seconds_per_request", 1e9},
	"ns/packet":      {"seconds_per_packet", 1e9},
	"ns/KB":          {"seconds_per_byte", 1e12},
	"bit/s":          {"bytes_per_second", 8},
	"1/s":            {"per_second", 1},
	"1/GB":           {"per_byte", 1e9},
	"B":              {"bytes", 1},
	"ratio":          {"ratio", 1},
	"1":              {"", 1},
}

// works are the units of work that a unit of CPU time may be per.
var works = []string{"transaction", "request", "KB", "packet"}

// stems are the names of metrics whose own name says a unit.
var stems = map[string]string{metric.RetransmitsPerG: "retransmits"}

// nameOf is the name of the family of a metric in a unit: the metric's own, with _ for the point, and the base unit.
func nameOf(m, unit string) string {
	stem, ok := stems[m]
	if !ok {
		stem = strings.ReplaceAll(m, ".", "_")
	}
	return strings.TrimSuffix(prefix+stem+"_"+bases[unit].unit, "_")
}

// catalogued are the units in which a metric of the catalogue may come.
func catalogued(m metric.Metric) []string {
	var units []string
	for _, work := range works {
		if u := metric.UnitFor(m.Name, work); len(units) == 0 || u != units[0] {
			units = append(units, u)
		}
	}
	return units
}
