package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

const (
	// kindChurn is the failure of a trial whose objects did not change as the conditions require.
	kindChurn = "churn"
	// noChurn is the error of a trial where the environment cannot change objects.
	noChurn = "objects cannot be changed there while it is measured"
)

// churning changes objects during one trial. The zero value does nothing.
type churning struct {
	churn func(ctx context.Context, c control.Churning) (*sample.Churn, error)
	what  control.Churning

	stop   context.CancelFunc
	ended  sync.WaitGroup
	seen   *sample.Churn
	failed error
}

// objectChanges returns the object changes of the attempt, not yet begun. They do nothing if the conditions require
// none, and fail if the environment cannot change objects.
func (a attempt) objectChanges() *churning {
	h := &churning{what: control.Churning{Variant: a.Profile, Warmup: a.warmup, Window: a.window}}
	if !a.Profile.Lab(a.plan.Lab).Churn.IsZero() {
		h.churn = func(context.Context, control.Churning) (*sample.Churn, error) { return nil, errors.New(noChurn) }
		if site, ok := a.env.At(a.Profile).(env.Churner); ok {
			h.churn = site.Churn
		}
	}
	return h
}

// begin starts the changes in the background. Call it when all sides have started.
func (h *churning) begin(ctx context.Context) {
	if h.churn == nil {
		return
	}
	ctx, h.stop = context.WithCancel(ctx)
	h.ended.Go(func() { h.seen, h.failed = h.churn(ctx, h.what) })
}

// end waits until the changes have ended and all objects are as before. Call it when all sides are done, with their error
// (may be nil); an error stops the changes early. It returns what was changed and the error of the trial.
func (h *churning) end(err error) (*sample.Churn, error) {
	if h.stop == nil {
		return nil, err
	}
	if err != nil {
		h.stop()
	}
	h.ended.Wait()
	h.stop()
	if err == nil && h.failed != nil {
		err = &control.Error{Kind: kindChurn, Message: fmt.Sprintf("changes during the trial: %s", h.failed)}
	}
	return h.seen, err
}
