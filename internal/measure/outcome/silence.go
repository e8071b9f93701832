package outcome

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// silentShare is the part of a window at its end in which nothing was completed that is no accident: TCP bears the loss of
	// a segment with a pause of 200 ms and some more.
	silentShare = 0.3
	// silentFor is how long that has to last to say that the path was cut: TCP's second pause is over by then.
	silentFor = time.Second
	// busyRow is how many operations a row has where a row without any is no accident; where they fall due in bursts, how many
	// of those.
	busyRow = 20
)

// Stalled says that a path was cut within the window: a side that had been busy completed nothing from some moment on until
// the end. The numbers of such a trial would be means over a path and no path. "" says that nothing shows that, which for a
// window without rows of progress, or of backends that are taken out and put back, it cannot.
func Stalled(w plan.Workload, client, server *sample.Observation) string {
	if silence, side := silent(w, client, server); silence >= silentFor && !w.Traits().Roll {
		return fmt.Sprintf("the %s completed nothing in the last %s of its window", side, silence.Round(10*time.Millisecond))
	}
	return ""
}

// silent returns the longer silence at the end of the two sides' windows, 0 for none that matters.
func silent(w plan.Workload, client, server *sample.Observation) (longest time.Duration, side string) {
	for _, o := range []*sample.Observation{client, server} {
		if o == nil || o.Tool != nil {
			continue
		}
		if d := silentEnd(o.Intervals, busyRow*uint64(max(w.Traits().Burst, 1))); d > longest {
			longest, side = d, o.Side
		}
	}
	return longest, side
}

// silentEnd returns how long nothing was completed at the end of a window whose rows had so many operations before; 0
// if that is no silentShare of it.
func silentEnd(all []sample.Interval, busy uint64) time.Duration {
	var rows []sample.Interval
	for _, r := range all {
		if !r.Warmup {
			rows = append(rows, r)
		}
	}
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
	if operations < busy*uint64(n) || float64(silence) < silentShare*float64(window) {
		return 0
	}
	return time.Duration(silence)
}

// silentEnding rings where a side fell silent and the window was too short to say that its path was cut.
func (t *trial) silentEnding() string {
	silence, side := silent(t.w, t.observation(t.client), t.observation(t.server))
	if silence == 0 {
		return ""
	}
	return fmt.Sprintf("the %s completed nothing in the last %s of its window", side, silence.Round(time.Millisecond))
}
