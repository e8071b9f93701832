package outcome

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// lastMoments is the length of the last part of a drain, as a share of the drain. A connection in this part suggests that
// others would have followed.
const lastMoments = 0.05

// hasRolls reports whether the backends of the trial left their Service and returned.
func (t *trial) hasRolls() bool { return t.server != nil && len(t.server.Rolls) > 0 }

// deriveRolls derives the metrics of the rolls. The times are the longest of the trial: the slowest node to learn determines
// the failures of a client.
func (t *trial) deriveRolls() {
	if !t.hasRolls() || t.client == nil {
		return
	}
	rolls := t.server.Rolls
	t.metrics[metric.FailuresPerRoll] = t.client.failureCount() / float64(len(rolls))
	// A new kept connection only shows that another broke, not when the nodes have learned.
	var removed, added int64
	sawRemoval := t.is.Reconnect
	sawAddition := sawRemoval
	for _, r := range rolls {
		removed, added = max(removed, r.LastNs), max(added, r.FirstNs)
		sawRemoval = sawRemoval && r.LastNs > 0 && !isUndrained(r.LastNs, r.DrainNs)
		sawAddition = sawAddition && r.Returned && r.FirstNs > 0
	}
	t.putMetric(metric.NetworkProgramming+".removed", float64(removed), sawRemoval)
	t.putMetric(metric.NetworkProgramming+".added", float64(added), sawAddition)
}

// isUndrained reports whether connections came until the end of the drain.
func isUndrained(last, drain int64) bool { return float64(last) > (1-lastMoments)*float64(drain) }

// describeShortDrains describes backends that still got connections at the end of their drain.
func (t *trial) describeShortDrains() string {
	if !t.hasRolls() || t.is.Drain == 0 {
		return ""
	}
	return t.describeRolls("backends still got connections when their drain of "+t.is.Drain.Round(time.Millisecond).String()+" was over",
		func(r sample.Roll) bool { return r.LastNs > 0 && isUndrained(r.LastNs, r.DrainNs) })
}

// describeRolls returns "N of M what", "" if N is 0. N is the number of rolls that like selects, M the number of all
// rolls.
func (t *trial) describeRolls(what string, like func(sample.Roll) bool) string {
	n := len(each.Where(t.server.Rolls, like))
	return evidenceIf(n > 0, "%d of %d %s", n, len(t.server.Rolls), what)
}

// describeAbsentBackends describes backends without a connection after their return, if each request has its own connection.
func (t *trial) describeAbsentBackends() string {
	if !t.hasRolls() || !t.is.Reconnect {
		return ""
	}
	return t.describeRolls("backends got no connection after their return: the window may be too short for it",
		func(r sample.Roll) bool { return r.FirstNs == 0 })
}
