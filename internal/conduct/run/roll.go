package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
)

const (
	// kindRoll is the failure of a trial whose backends were not rolled as its workload says.
	kindRoll = "roll"
	// restoreLimit bounds the time for putting back the backends that an interrupted trial left out.
	restoreLimit = 20 * time.Second
	// notRolled is why a case is not measured where nothing can roll.
	notRolled = "the backends of a Service cannot be rolled there"
)

// rolling takes the backends of one trial out of their Service in turn, and puts them back. The zero value does
// nothing.
type rolling struct {
	roll    func(ctx context.Context, b control.Backend, in bool) error
	job     job
	servers []*control.Client

	stop   context.CancelFunc
	ended  sync.WaitGroup
	rolled int   // backends that have been out and in again
	out    bool  // the next backend is out; after end, because it could not be put back
	failed error // why the roll stopped early
	doing  string
}

// rolls reports whether the servers of a job leave their Service in turn.
func rolls(j job) bool { return j.workload.Rolled(j.Path) }

// rolling returns what rolls the servers of a job; it does nothing if the job does not roll.
func (c *conductor) rolling(j job, servers []*control.Client) *rolling {
	r := &rolling{job: j, servers: servers}
	if rolls(j) {
		r.roll = c.env.At(j.Profile).(env.Roller).Roll // survey has asked it
	}
	return r
}

// putBack puts back the backends that earlier trials have left out of a Service, before a job that rolls one. They
// remain if the API server was away. It returns the error of the trial, which would begin with a backend too few.
func (c *conductor) putBack(ctx context.Context, j job) error {
	for rolls(j) && len(c.missing) > 0 {
		if err := c.env.At(c.missing[0].Route.Variant).(env.Roller).Roll(ctx, c.missing[0], true); err != nil {
			return &control.Error{Kind: kindRoll, Message: fmt.Sprintf("backend %d may be out of the Service since an earlier trial: %s", c.missing[0].Index+1, err)}
		}
		c.missing = c.missing[1:]
	}
	return nil
}

// begin is called when all sides have started: the window opens after the warm-up.
func (r *rolling) begin(ctx context.Context) {
	if r.roll == nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	opens := time.Now().Add(r.job.warmup)
	r.ended.Go(func() {
		for ; r.rolled < len(r.servers); r.rolled++ {
			if r.failed = r.step(ctx, opens); r.failed != nil {
				return
			}
		}
	})
}

// step rolls the next backend.
func (r *rolling) step(ctx context.Context, opens time.Time) error {
	out, back := r.job.workload.RollStep(r.job.window, r.rolled)
	server := r.servers[r.rolled]
	r.doing = "waiting for the time to take one out"
	if err := until(ctx, opens.Add(out)); err != nil {
		return err
	}
	r.doing = "telling its server to leave"
	// A deleted pod gets its signal to end when it leaves the Service. Here the signal comes a moment earlier, so the
	// server counts at least as long.
	if err := server.Leave(ctx, r.job.workload.Traits().Drain); err != nil {
		return err
	}
	r.out, r.doing = true, "taking it out of the Service"
	if err := r.roll(ctx, r.backend(), false); err != nil {
		return err
	}
	r.doing = "waiting for the time to put it back"
	if err := until(ctx, opens.Add(back)); err != nil {
		return err
	}
	r.doing = "having its server listen again"
	if err := server.Return(ctx); err != nil { // one that is ready listens already
		return err
	}
	r.doing = "putting it back into the Service"
	if err := r.roll(ctx, r.backend(), true); err != nil {
		return err
	}
	r.out = false
	return nil
}

func (r *rolling) backend() control.Backend {
	return control.Backend{Route: r.job.Route(), Index: r.rolled}
}

// end is called when all sides are done, in ctx, with their error (may be nil). When it returns, all backends are in
// their Service, except one that could not be put back. It returns the error of the trial.
func (r *rolling) end(ctx context.Context, err error) error {
	if r.stop == nil {
		return err
	}
	r.stop()
	r.ended.Wait()
	var left error
	if r.out {
		bounded, done := context.WithTimeout(context.WithoutCancel(ctx), restoreLimit)
		defer done()
		if left = r.roll(bounded, r.backend(), true); left != nil {
			left = fmt.Errorf("put backend %d back: %w", r.rolled+1, left)
		}
		r.out = left != nil
	}
	switch {
	case err != nil && left != nil:
		return fmt.Errorf("%w; %w", err, left)
	case err != nil:
		return err
	case r.rolled == len(r.servers):
		return nil
	}
	why := r.failed
	if errors.Is(why, context.Canceled) {
		why = fmt.Errorf("the window was over while %s: take a longer one (--duration)", r.doing)
	}
	if left != nil && !strings.Contains(left.Error(), why.Error()) { // often the same cause prevents both
		why = fmt.Errorf("%w; %w", why, left)
	}
	return &control.Error{Kind: kindRoll, Message: fmt.Sprintf("%d of %d backends were taken out of the Service and put back: %s", r.rolled, len(r.servers), why)}
}

// until waits until a time, and returns an error if ctx ends first.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
