package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
)

// Mender is an Environment of which a part may go for a while, or for good: a cluster. It is asked after each trial that
// failed, so that what is gone costs the trial that it hit, and not all those that are still to come.
type Mender interface {
	// Mend returns when everything that trials need stands, with what was wrong until then, "" for nothing. The error says
	// what does not stand, and will not come back.
	Mend(ctx context.Context) (wrong string, err error)
}

// LostError means that a part of the environment went while it was measured, and that the run ended there. Its file can be
// resumed, in an environment that is raised anew.
type LostError struct {
	// Trials and Failed count those of this invocation.
	Trials, Failed int
	Err            error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the run ends after %d trials (%d failed): %s", e.Trials, e.Failed, e.Err)
}
func (e *LostError) Unwrap() error { return e.Err }

// mend waits, after a trial that failed, until the next has a chance, and returns why none will have. What is wrong is
// added to what the trial says: it may be all that there is to know.
func (c *conductor) mend(ctx context.Context, rec *result.Record) error {
	env, ok := c.env.(Mender)
	if !ok || rec.Status == result.OK {
		return nil
	}
	wrong, err := env.Mend(ctx)
	if ctx.Err() != nil {
		return nil // an interrupted run ends as such
	}
	if err != nil {
		wrong = err.Error()
	}
	if wrong != "" && !strings.Contains(rec.Error.Message, wrong) {
		rec.Error.Message += "; " + wrong
	}
	return err
}
