package outcome

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveResolutions derives the metrics of resolved names.
func deriveResolutions(t *trial) {
	c := t.client
	if c == nil {
		return
	}
	if !t.is.Open() {
		t.metrics[metric.ResolutionRate] = c.perSecond(float64(c.Operations))
	}
	t.deriveOpenLoop(c)
	t.deriveErrorRate(c)
	t.deriveDistribution(metric.ResolutionTime, c.RTT)
	n := c.Names
	if n == nil {
		return
	}
	t.metrics[metric.QueryRate] = c.perSecond(float64(n.Queries))
	if all := float64(c.Operations) + c.failureCount(); all > 0 {
		t.metrics[metric.QueriesPerResolution] = float64(n.Queries) / all
		t.metrics[metric.ResolutionsWaited] = min(float64(n.Waited)/all, 1)
	}
	if t.c.Drops != nil {
		sums := map[string]float64{}
		for _, d := range t.c.Drops {
			sums[d.Kind] += float64(d.Packets)
		}
		t.metrics[metric.InsertFailed], t.metrics[metric.Clashes] = sums[sample.DropInsert], sums[sample.Clash]
	}
}

// convertServerQueries converts the server's count of queries to a count of resolutions, as the client has.
func convertServerQueries(t *trial) {
	if per := t.metrics[metric.QueriesPerResolution]; per > 0 && t.server != nil {
		o := *t.server.Observation
		o.Operations = uint64(float64(o.Operations)/per + 0.5)
		t.server.Observation = &o
	}
}
