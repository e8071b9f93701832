package impact

import "github.com/cnibench/cnibench/internal/plan"

// Load is a load for planning CPUs: 10 Gbit/s, or 100,000 requests a second.
type Load struct {
	// Text names the load, Short is for narrow columns.
	Text, Short string
	// units is its number of units of work per second.
	units float64
}

// LoadOf returns the load for planning the CPUs of a workload; false if there is none for its unit of work.
func LoadOf(w plan.Workload) (Load, bool) {
	t := w.Traits()
	switch {
	case t.Work == plan.Kilobyte:
		return Load{"10 Gbit/s", "10 Gbit/s", 10e9 / 8 / 1000}, true
	case t.Names.Given():
		return Load{"100,000 resolutions/s", "100k/s", 1e5}, true
	case t.Exchanges() && t.Reconnect:
		return Load{"100,000 connections/s", "100k/s", 1e5}, true
	case t.Exchanges():
		return Load{"100,000 requests/s", "100k/s", 1e5}, true
	case t.Work == plan.Packet:
		return Load{"1,000,000 packets/s", "1M/s", 1e6}, true
	}
	return Load{}, false
}

// Cores returns how many CPUs the load keeps busy if a unit of work takes demand ns of CPU time, summed over both ends
// and the kernel between them.
func (l Load) Cores(demand float64) float64 { return l.units * demand / 1e9 }
