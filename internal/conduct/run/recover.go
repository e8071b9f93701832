package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
)

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

// recover waits after a failed trial until the next can succeed, and returns why none will. It adds what was wrong to the
// failure of the trial.
func (c *conductor) recover(ctx context.Context, rec *result.Record) error {
	if c.can.Recover == nil || rec.Status == result.OK {
		return nil
	}
	wrong, err := c.can.Recover(ctx)
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
