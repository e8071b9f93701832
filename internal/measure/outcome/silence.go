package outcome

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// silentShare is the shortest silence at the end of a window that counts, as a share of the window: TCP pauses
	// for 200 ms and more when it loses a segment.
	silentShare = 0.3
	// silentFor is the shortest silence that proves that the path was cut: TCP's second pause is over by then.
	silentFor = time.Second
	// busyRow is how many operations, or bursts, a side must complete in a tenth of the window on average, for its
	// silence to count.
	busyRow = 20
)

// Stalled returns a text if the path was cut during the window: a busy side completed nothing in its last part, for at
// least silentFor. Otherwise it returns "", and always for dns, tools, rolled backends and windows without progress
// rows.
func Stalled(w plan.Workload, client, server *sample.Observation) string {
	silence, side := longestSilence(w, client, server)
	return evidenceIf(silence >= silentFor && !w.Traits().Roll && !w.Traits().Names.Given(), // dns waits for its timeouts
		"the %s completed nothing in the last %s of its window", side, silence.Round(10*time.Millisecond))
}

// longestSilence returns the longest silence of a side at the end of its window, and the side. It returns 0 if
// endSilence is 0 for both sides.
func longestSilence(w plan.Workload, client, server *sample.Observation) (longest time.Duration, side string) {
	for _, o := range []*sample.Observation{client, server} {
		if o == nil || o.Tool != nil {
			continue
		}
		if d := endSilence(o.Intervals, busyRow*uint64(max(w.Traits().Burst, 1))); d > longest {
			longest, side = d, o.Side
		}
	}
	return longest, side
}

// endSilence returns the silence at the end of a window, if the time before it had at least busy operations in each
// tenth of the window, on average. It returns 0 otherwise, or if the silence is below silentShare.
func endSilence(all []sample.Interval, busy uint64) time.Duration {
	rows := sample.InWindow(all)
	n := len(rows)
	for n > 0 && rows[n-1].Operations == 0 {
		n--
	}
	if n == 0 || n == len(rows) {
		return 0
	}
	var operations uint64
	for _, r := range rows[:n] {
		operations += r.Operations
	}
	silence, window := rows[len(rows)-1].EndNs-rows[n-1].EndNs, rows[len(rows)-1].EndNs-rows[0].StartNs
	// busy refers to a tenth of the window, whatever the length of the slices.
	if float64(operations) < float64(busy)*10*float64(window-silence)/float64(window) || float64(silence) < silentShare*float64(window) {
		return 0
	}
	return time.Duration(silence)
}

// describeSilentEnding describes a busy side that completed nothing at the end of its window, even if the silence is too short
// for Stalled.
func (t *trial) describeSilentEnding() string {
	silence, side := longestSilence(t.w, t.observation(t.client), t.observation(t.server))
	return evidenceIf(silence > 0, "the %s completed nothing in the last %s of its window", side, silence.Round(time.Millisecond))
}
