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
	// before has the counters when the window opened. It is valid once opened is closed.
	before []sample.Drop
	failed error
	opened chan struct{}
}

// watch returns what reads the drops of the attempt, where it can lose packets for good and the environment can tell.
func (a attempt) watch() *watch {
	w := &watch{warmup: a.warmup, opened: make(chan struct{})}
	if site, ok := a.env.At(a.Profile).(env.DropCounter); ok && (a.workload.Traits().Datagrams() || a.workload.Traits().Names.Given()) {
		w.read = func() ([]sample.Drop, error) { return site.Drops(a.route) }
	}
	return w
}

// begin is called when both sides have started: the window opens after the warm-up.
func (w *watch) begin() {
	if w.read == nil {
		return
	}
	w.timer = time.AfterFunc(w.warmup, func() {
		w.before, w.failed = w.read()
		close(w.opened)
	})
}

// end is called when both sides are done. It returns what was dropped since the window opened, an empty list for
// nothing, and nil if that could not be read: then the place of a loss is unknown, but the trial is valid.
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
