package plan

import (
	"fmt"
	"time"
)

// MaxDrain bounds HTTP.Drain; Kubernetes' own grace of a pod is 30 s.
const MaxDrain = time.Minute

// A step of a roll is one backend's: in service for a quarter of it, out for a half, and in again for the last quarter.
const (
	rollOut  = 0.25
	rollBack = 0.75
)

// RollStep says when in a window, counted from its begin, backend i of the workload is taken out of its Service and when
// it is put back. The backends share the window evenly, one after the other, so that all but one serve at any moment.
func (w Workload) RollStep(window time.Duration, i int) (out, back time.Duration) {
	step := float64(window) / float64(max(w.Traits().Backends, 1))
	return time.Duration((float64(i) + rollOut) * step), time.Duration((float64(i) + rollBack) * step)
}

// Rolls returns why the workload cannot be rolled within a window, nil if it can or is not rolled.
func (w Workload) Rolls(window time.Duration) error {
	t := w.Traits()
	if !t.Roll {
		return nil
	}
	out, back := w.RollStep(window, 0)
	away := back - out
	switch {
	case away < leastAway:
		return fmt.Errorf("%s: a window of %s removes each of %d backends for %s, want at least %s: give a longer window (--duration %s)",
			w, window, t.Backends, away, leastAway, 2*leastAway*time.Duration(t.Backends))
	case t.Drain > away*4/5:
		return fmt.Errorf("%s: in a window of %s each of %d backends is out %s and drains %s: give a longer window (--duration) or a shorter drain",
			w, window, t.Backends, away, t.Drain)
	}
	return nil
}

// How long a backend is out at least, and how long each has of a window that is chosen: on a cluster, where kube-proxy takes
// up changes once in a second, more.
const (
	leastAway      = 50 * time.Millisecond
	rollShare      = 400 * time.Millisecond
	rollShareAfar  = 4 * time.Second
	drainOfItsAway = 4 // of a window, so that the drain is half of the time that a backend is out
)

// rollFit is the shortest window that is chosen for the rolled workloads of a plan, 0 without any.
func (p Plan) rollFit() time.Duration {
	share := rollShare
	if p.OnCluster() {
		share = rollShareAfar
	}
	var fit time.Duration
	for _, w := range p.Workloads {
		if t := w.Traits(); t.Roll {
			fit = max(fit, time.Duration(t.Backends)*max(share, drainOfItsAway*t.Drain))
		}
	}
	return fit
}

// Rolled reports whether the workload's servers are rolled on a path: only a Service has backends.
func (w Workload) Rolled(p Path) bool { return w.Traits().Roll && w.Servers(p) > 1 }
