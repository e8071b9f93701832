package plan

import (
	"errors"
	"fmt"
	"time"
)

// MaxDrain bounds Workload.Drain; Kubernetes' own grace of a pod is 30 s.
const MaxDrain = time.Minute

// A step of a roll is one backend's: in service for a quarter of it, out for a half, and in again for the last quarter.
const (
	rollOut  = 0.25
	rollBack = 0.75
)

// RollStep says when in a window, counted from its begin, backend i of the workload is taken out of its Service and when
// it is put back. The backends share the window evenly, one after the other, so that all but one serve at any moment.
func (w Workload) RollStep(window time.Duration, i int) (out, back time.Duration) {
	step := float64(window) / float64(max(w.Backends, 1))
	return time.Duration((float64(i) + rollOut) * step), time.Duration((float64(i) + rollBack) * step)
}

// Rolls returns why the workload cannot be rolled within a window, nil if it can or is not rolled.
func (w Workload) Rolls(window time.Duration) error {
	if !w.Roll {
		return nil
	}
	out, back := w.RollStep(window, 0)
	away := back - out
	switch {
	case away < leastAway:
		return fmt.Errorf("%s: in a window of %s each of %d backends would be out for %s, want %s at least: take a longer window (--duration %s)",
			w, window, w.Backends, away, leastAway, 2*leastAway*time.Duration(w.Backends))
	case w.Drain > away*4/5:
		return fmt.Errorf("%s: in a window of %s each of %d backends is out for %s, which a drain of %s fills: take a longer window (--duration) or a shorter drain",
			w, window, w.Backends, away, w.Drain)
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
		if w.Roll {
			fit = max(fit, time.Duration(w.Backends)*max(share, drainOfItsAway*w.Drain))
		}
	}
	return fit
}

// Rolled says whether the workload's servers are rolled on a path: only a Service has backends.
func (w Workload) Rolled(p Path) bool { return w.Roll && w.Servers(p) > 1 }

// roll takes over what is about rolling, where there are several backends.
func (n *Workload) roll(w Workload) {
	if n.Roll = w.Roll && n.Backends > 1; n.Roll {
		n.Drain = w.Drain
	}
}

// checkRoll refuses what cannot be rolled. w is as it was written.
func (w Workload) checkRoll() error {
	var errs []error
	if w.Roll && w.Backends < 2 {
		errs = append(errs, errors.New("roll takes one backend after the other out of the Service and needs several: want backends=2 or more"))
	}
	if w.Drain != 0 && !w.Roll {
		errs = append(errs, errors.New("drain is of backends that are rolled: want roll, too"))
	}
	if w.Roll && w.Tool != "" {
		errs = append(errs, fmt.Errorf("roll is for our own servers, and this is %s's", w.Tool))
	}
	return errors.Join(errs...)
}

func setDrain(w *Workload, s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return err
	}
	if d < 0 || d > MaxDrain {
		return fmt.Errorf("%s is out of range: want 0 to %s", s, MaxDrain)
	}
	w.Drain = d
	return nil
}
