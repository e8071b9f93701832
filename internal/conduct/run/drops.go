package run

import (
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// watch reads the drop counters of the hosts of a path at the start and end of one window. The zero value reads
// nothing.
type watch struct {
	read   func() ([]sample.Drop, error)
	warmup time.Duration
	timer  *time.Timer
	// before has the counters at the start of the window. It is valid once the channel opened is closed.
	before []sample.Drop
	failed error
	opened chan struct{}
}

// dropWatch returns the watch of the attempt, not yet begun. It reads nothing unless the workload sends datagrams or
// resolves names (TCP repeats what is lost) and the environment has drop counters.
func (a attempt) dropWatch() *watch {
	w := &watch{warmup: a.warmup, opened: make(chan struct{})}
	if site, ok := a.env.At(a.Profile).(env.DropCounter); ok && (a.workload.Traits().Datagrams() || a.workload.Traits().Names.Given()) {
		w.read = func() ([]sample.Drop, error) { return site.Drops(a.route) }
	}
	return w
}

// begin schedules the first reading for the start of the window, after the warm-up. Call it when both sides have started.
func (w *watch) begin() {
	if w.read == nil {
		return
	}
	w.timer = time.AfterFunc(w.warmup, func() {
		w.before, w.failed = w.read()
		close(w.opened)
	})
}

// end returns the drops since the window opened: an empty list if there were none, and nil if the window did not open or the
// counters could not be read. The place of a loss is then unknown, but the trial is valid. Call it when both sides are done.
func (w *watch) end() []sample.Drop {
	if w.timer == nil || w.timer.Stop() {
		return nil
	}
	<-w.opened
	after, err := w.read()
	if w.failed != nil || err != nil {
		return nil
	}
	return append([]sample.Drop{}, sample.DropsBetween(w.before, after)...)
}
