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
	// kindRoll is the failure of a trial whose backends could not be rolled as its workload requires.
	kindRoll = "roll"
	// restoreLimit bounds the time for putting back the backend that an interrupted trial left out of its Service.
	restoreLimit = 20 * time.Second
	// notRolled is why a case is not measured where the environment cannot roll backends.
	notRolled = "the backends of a Service cannot be rolled there"
)

// rolling takes the backends of one trial out of their Service in turn, and puts them back. The zero value does
// nothing.
type rolling struct {
	roll    func(ctx context.Context, b control.Backend, in bool) error
	of      attempt
	servers []*control.Client

	stop   context.CancelFunc
	ended  sync.WaitGroup
	rolled int   // backends that have been out and in again
	out    bool  // the backend with index rolled is out of the Service; after end: it could not be put back
	failed error // why the roll stopped early
	doing  string
}

// rollsBackends reports whether the servers leave their Service in turn during the window.
func (a attempt) rollsBackends() bool { return a.workload.Rolled(a.Path) }

// backendRoll returns the roll of the servers, not yet begun. It does nothing if the workload does not roll them.
func (a attempt) backendRoll(servers []*control.Client) *rolling {
	r := &rolling{of: a, servers: servers}
	if a.rollsBackends() {
		r.roll = a.env.At(a.Profile).(env.Roller).Roll // surveyPlan has asked it
	}
	return r
}

// putBackBackends puts back the backends that earlier trials left out of a Service, for example because the API server did not
// answer. It does nothing if this attempt rolls no backends. If it fails, the trial fails, too: a backend would be missing.
func (a attempt) putBackBackends(ctx context.Context) error {
	for a.rollsBackends() && len(a.missing) > 0 {
		if err := a.env.At(a.missing[0].Route.Variant).(env.Roller).Roll(ctx, a.missing[0], true); err != nil {
			return &control.Error{Kind: kindRoll, Message: fmt.Sprintf("backend %d may be out of the Service since an earlier trial: %s", a.missing[0].Index+1, err)}
		}
		a.missing = a.missing[1:]
	}
	return nil
}

// begin starts the roll in the background. Call it when all sides have started: the window opens after the warm-up.
func (r *rolling) begin(ctx context.Context) {
	if r.roll == nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	opens := time.Now().Add(r.of.warmup)
	r.ended.Go(func() {
		for ; r.rolled < len(r.servers); r.rolled++ {
			if r.failed = r.rollNextBackend(ctx, opens); r.failed != nil {
				return
			}
		}
	})
}

// rollNextBackend takes the next backend out of the Service and puts it back, at the times that the workload sets. The window
// opens at opens. It fails if ctx ends or a step fails.
func (r *rolling) rollNextBackend(ctx context.Context, opens time.Time) error {
	out, back := r.of.workload.RollStep(r.of.window, r.rolled)
	server := r.servers[r.rolled]
	r.doing = "waiting for the time to take one out"
	if err := waitUntil(ctx, opens.Add(out)); err != nil {
		return err
	}
	r.doing = "telling its server to leave"
	// A deleted pod gets its signal to end when it leaves the Service. Here the signal is a moment earlier, so that the server
	// counts at least as long.
	if err := server.Leave(ctx, r.of.workload.Traits().Drain); err != nil {
		return err
	}
	r.out, r.doing = true, "taking it out of the Service"
	if err := r.roll(ctx, r.currentBackend(), false); err != nil {
		return err
	}
	r.doing = "waiting for the time to put it back"
	if err := waitUntil(ctx, opens.Add(back)); err != nil {
		return err
	}
	r.doing = "having its server listen again"
	if err := server.Return(ctx); err != nil { // a backend must listen before it is ready
		return err
	}
	r.doing = "putting it back into the Service"
	if err := r.roll(ctx, r.currentBackend(), true); err != nil {
		return err
	}
	r.out = false
	return nil
}

func (r *rolling) currentBackend() control.Backend {
	return control.Backend{Route: r.of.Route(), Index: r.rolled}
}

// end stops the roll and puts back a backend that is still out; r.out remains true if that fails. Call it when all sides
// are done, with their error err (may be nil). It fails if err is not nil, and if not all backends were rolled.
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
		if left = r.roll(bounded, r.currentBackend(), true); left != nil {
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

// waitUntil waits until a time. It fails if ctx ends first.
func waitUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
