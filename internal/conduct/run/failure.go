package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// LostError means that a part of the environment was lost during the measurement, and that the run ended there. Its
// file can be resumed in a new environment.
type LostError struct {
	// Trials counts the trials of this invocation, Failed those that failed.
	Trials, Failed int
	Err            error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the run ends after %d trials (%d failed): %s", e.Trials, e.Failed, e.Err)
}
func (e *LostError) Unwrap() error { return e.Err }

// awaitRecovery waits after a failed trial until the environment works again, and adds what was wrong to the failure
// of rec. It fails if the environment cannot recover. It does nothing after a trial that succeeded.
func (c *conductor) awaitRecovery(ctx context.Context, rec *result.Record) error {
	if rec.Status == result.OK {
		return nil
	}
	at := c.env.At(rec.Profile)
	var wrong string
	var err error
	if site, ok := at.(env.Recoverer); ok {
		wrong, err = site.Recover(ctx)
	}
	if ctx.Err() != nil {
		return nil // an interrupted run ends as interrupted
	}
	if err != nil {
		wrong = err.Error()
	} else if site, ok := at.(env.Meshed); ok && !rec.Pair.IsZero() {
		if node, why := site.Away(ctx, rec.Pair, true); node != "" {
			wrong = "node " + node + ": " + why
		}
	}
	if wrong != "" && !strings.Contains(rec.Error.Message, wrong) {
		rec.Error.Message += "; " + wrong
	}
	return err
}

// trialFailure returns the record of a trial's error: kind, side and message. limit is the time that the trial had;
// the message of a timeout names it.
func trialFailure(err error, limit time.Duration) *result.Failure {
	f := &result.Failure{Kind: "internal", Message: err.Error()}
	var side *control.SideError
	if errors.As(err, &side) {
		f.Side, f.Message = side.Side, strings.Replace(f.Message, side.Error(), side.Err.Error(), 1)
	}
	var said *control.Error
	switch {
	case errors.As(err, &said):
		f.Kind = said.Kind
		f.Message = strings.Replace(f.Message, said.Error(), said.Message, 1) // the kind has its own field
	case errors.Is(err, context.DeadlineExceeded):
		why := strings.TrimSuffix(f.Message, ": "+context.DeadlineExceeded.Error())
		f.Kind, f.Message = kindTimeout, fmt.Sprintf("the trial did not end within %s: %s", limit, why)
	}
	return f
}

// notByPolicy are the kinds of failure that a NetworkPolicy cannot cause: failures of agents and of the environment.
var notByPolicy = []string{control.KindGone, control.KindLost, control.KindProtocol, control.KindVersion, control.KindStart, control.KindBusy, control.KindCancelled, kindNoCapacity, kindTableFull, kindRoll, kindChurn, kindNotRaised, kindDead}

// addPolicyNames adds to the error of a failed trial the names of the NetworkPolicies that select its client or a
// server: one may be the cause. It does nothing for failures that a policy cannot cause (notByPolicy).
func addPolicyNames(ctx context.Context, at env.Site, rec *result.Record) {
	site, ok := at.(env.PolicyLister)
	if !ok || rec.Status == result.OK || slices.Contains(notByPolicy, rec.Error.Kind) {
		return
	}
	if names := site.Policies(ctx, rec.Profile, rec.Path); len(names) > 0 {
		rec.Error.Message += "; NetworkPolicies select its ends: " + strings.Join(names, ", ")
	}
}

// kindTableFull is the failure of a trial in which a table, such as conntrack, was full: its numbers would measure lost
// and repeated packets, not the dataplane.
const kindTableFull = "table full"

// overflowCounts returns how often each table of the profile has overflowed so far, by the name of the table. It
// returns nil if the environment cannot count overflows, or if a counter cannot be read.
func (a attempt) overflowCounts() map[string]uint64 {
	site, ok := a.env.At(a.Profile).(env.TableCounter)
	if !ok {
		return nil
	}
	tables, err := site.Full(a.Profile)
	if err != nil {
		return nil
	}
	return tables
}

// overflowError returns the error of a trial that ended with err (may be nil). If the counter of a table rose from before to
// after, it returns an error of kindTableFull, which includes err. Otherwise it returns err.
func overflowError(before, after map[string]uint64, err error) error {
	if before == nil {
		return err // what was full before the trial is unknown
	}
	var said []string
	for _, table := range slices.Sorted(maps.Keys(after)) {
		if grown := after[table] - before[table]; after[table] > before[table] {
			said = append(said, fmt.Sprintf("%s: %d", table, grown))
		}
	}
	if len(said) == 0 {
		return err
	}
	if err != nil {
		said = append(said, "it ended with "+err.Error())
	}
	return &control.Error{Kind: kindTableFull, Message: strings.Join(said, "; ")}
}

// kindDead is the failure of a trial in which a program of the dataplane ended by itself.
const kindDead = "dataplane died"

// deadError returns the error of a trial that ended with err (may be nil). If a program of the profile has ended by
// itself, it returns an error of kindDead, which includes err. Otherwise it returns err.
func (a attempt) deadError(err error) error {
	site, ok := a.env.At(a.Profile).(env.ProgramWatcher)
	if !ok {
		return err
	}
	why := site.Dead(a.Profile)
	if why == nil {
		return err
	}
	message := why.Error()
	if err != nil {
		message += "; the trial ended with " + err.Error()
	}
	return &control.Error{Kind: kindDead, Message: message}
}
