package outcome

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// requests derives the metrics of http from what the client saw: it is the receiver of all payload.
func (t *trial) requests() {
	c := t.client
	if c == nil {
		return
	}
	if !t.is.Open() {
		t.metrics[metric.RequestRate] = c.perSecond(float64(c.Operations))
	}
	t.paced(c)
	t.metrics[metric.Goodput] = c.perSecond(8 * c.received())
	t.metrics[metric.Transferred] = c.received()
	t.failures(c)
	t.distribution(metric.ResponseTime, c.RTT)
	t.distribution(metric.ConnectTime, c.Connect)
	t.shares()
	t.rolls()
}

// failures derives the share of the client's attempts that came to nothing.
func (t *trial) failures(c *side) {
	failed := c.failures()
	if attempts := float64(c.Operations) + failed; attempts > 0 {
		t.metrics[metric.ErrorRate] = failed / attempts
	}
}

// shares derives how the load was spread over several backends. The shares are of requests, because that is the load; the
// test is over connections, because a Service chooses a backend for a connection, and the requests on one are no
// independent choices. Where kept connections had no response in the window there is no test: those that had are a
// selection by speed. Nor is there one where backends were taken out meanwhile.
func (t *trial) shares() {
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
	t.put(metric.BackendEvenness, p, ok && !t.rolled() && (t.is.Reconnect || answered >= t.is.Flows))
}

// backends returns what each of several backends did, those that did nothing too; nil if there are not several, or if
// they did not give their names.
func (t *trial) backends() []sample.Backend {
	if t.client == nil || t.c.Backends < 2 || len(t.client.Backends) == 0 {
		return nil
	}
	var list []sample.Backend
	for _, b := range t.client.Backends {
		list = append(list, b)
	}
	for len(list) < t.c.Backends {
		list = append(list, sample.Backend{})
	}
	return list
}

// idleBackend rings where a backend got no connection although chance alone would hardly have left it out.
func (t *trial) idleBackend() string {
	backends := t.backends()
	var idle, connections uint64
	for _, b := range backends {
		connections += b.Connections
		if b.Requests == 0 {
			idle++
		}
	}
	const enough = 5 // connections for each backend: one in 150 backends stays without by chance
	if t.rolled() || idle == 0 || connections < enough*uint64(len(backends)) {
		return ""
	}
	return fmt.Sprintf("%d of %d backends answered none of %d connections", idle, len(backends), connections)
}
