package outcome

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// lastMoments is the part of a drain within which a connection says that more would have come after it.
const lastMoments = 0.05

// rolled says whether the backends of the trial were taken out of their Service and put back.
func (t *trial) rolled() bool { return t.server != nil && len(t.server.Rolls) > 0 }

// rolls derives what taking backends out and putting them back came to. The times are the longest of the trial's: what a
// client suffers from is the node that learns last, and a roll is over when the last backend is back.
func (t *trial) rolls() {
	if !t.rolled() || t.client == nil {
		return
	}
	rolls := t.server.Rolls
	t.metrics[metric.FailuresPerRoll] = t.client.failures() / float64(len(rolls))
	// Where connections are kept, a new one comes when another breaks, and says nothing of when the nodes have learned.
	var removed, added int64
	sawRemoval := t.is.Reconnect
	sawAddition := sawRemoval
	for _, r := range rolls {
		removed, added = max(removed, r.LastNs), max(added, r.FirstNs)
		sawRemoval = sawRemoval && r.LastNs > 0 && !undrained(r.LastNs, r.DrainNs)
		sawAddition = sawAddition && r.Returned && r.FirstNs > 0
	}
	t.put(metric.NetworkProgramming+".removed", float64(removed), sawRemoval)
	t.put(metric.NetworkProgramming+".added", float64(added), sawAddition)
}

// undrained says whether connections came until the drain ended.
func undrained(last, drain int64) bool { return float64(last) > (1-lastMoments)*float64(drain) }

// shortDrain rings where a backend ended while connections were still sent to it although it had drained.
func (t *trial) shortDrain() string {
	if !t.rolled() || t.is.Drain == 0 {
		return ""
	}
	n := 0
	for _, r := range t.server.Rolls {
		if r.LastNs > 0 && undrained(r.LastNs, r.DrainNs) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d backends were still sent connections when their drain of %s was over", n, len(t.server.Rolls), t.is.Drain.Round(time.Millisecond))
}

// absentBackend rings where a backend that was put back got no connection any more within the window, though each request
// has one of its own.
func (t *trial) absentBackend() string {
	if !t.rolled() || !t.is.Reconnect {
		return ""
	}
	n := 0
	for _, r := range t.server.Rolls {
		if r.FirstNs == 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d backends got no connection after they had been put back: the window may be too short for their return", n, len(t.server.Rolls))
}
