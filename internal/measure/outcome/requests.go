package outcome

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveRequests derives the metrics of http from the client's observation, because the client receives all payload.
func (t *trial) deriveRequests() {
	c := t.client
	if c == nil {
		return
	}
	if !t.is.Open() {
		t.metrics[metric.RequestRate] = c.perSecond(float64(c.Operations))
	}
	t.deriveOpenLoop(c)
	t.metrics[metric.Goodput] = c.perSecond(8 * c.receivedBytes())
	t.metrics[metric.Transferred] = c.receivedBytes()
	t.deriveErrorRate(c)
	t.deriveDistribution(metric.ResponseTime, c.RTT)
	t.deriveDistribution(metric.ConnectTime, c.Connect)
	t.deriveBackendShares()
	t.deriveRolls()
}

// deriveErrorRate derives the share of the client's attempts that failed.
func (t *trial) deriveErrorRate(c *side) {
	failed := c.failureCount()
	if attempts := float64(c.Operations) + failed; attempts > 0 {
		t.metrics[metric.ErrorRate] = failed / attempts
	}
}

// deriveBackendShares derives the smallest and the largest share of the requests that a backend answered, and the p
// value of a test that all backends are equally likely. The test counts connections, because a Service chooses a
// backend for each connection. It is omitted for rolled backends, and if a kept connection had no response in the
// window.
func (t *trial) deriveBackendShares() {
	backends := t.backends()
	if backends == nil {
		return
	}
	var connections []float64
	answered := 0
	least, most, sum := backends[0].Requests, uint64(0), uint64(0)
	for _, b := range backends {
		least, most, sum = min(least, b.Requests), max(most, b.Requests), sum+b.Requests
		connections = append(connections, float64(b.Connections))
		answered += int(b.Connections)
	}
	t.metrics[metric.BackendShare+".min"] = float64(least) / float64(sum)
	t.metrics[metric.BackendShare+".max"] = float64(most) / float64(sum)
	p, ok := stat.EvenP(connections)
	t.putMetric(metric.BackendEvenness, p, ok && !t.hasRolls() && (t.is.Reconnect || answered >= t.is.Flows))
}

// backends returns the work of each backend, idle ones included; nil if there is only one, or if the responses do not
// name their backends.
func (t *trial) backends() []sample.Backend {
	if t.client == nil || t.c.Backends < 2 || len(t.client.Backends) == 0 {
		return nil
	}
	list := slices.Collect(maps.Values(t.client.Backends))
	for len(list) < t.c.Backends {
		list = append(list, sample.Backend{})
	}
	return list
}

// describeIdleBackends describes backends that answered no request, unless chance explains them.
func (t *trial) describeIdleBackends() string {
	backends := t.backends()
	var idle, connections uint64
	for _, b := range backends {
		connections += b.Connections
		if b.Requests == 0 {
			idle++
		}
	}
	const enough = 5 // connections for each backend: with this many, one backend in 150 has none by chance
	return evidenceIf(!t.hasRolls() && idle > 0 && connections >= enough*uint64(len(backends)),
		"%d of %d backends answered none of %d connections", idle, len(backends), connections)
}
