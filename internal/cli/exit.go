package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Exit codes.
const (
	exitFine         = 0
	exitFailed       = 1
	exitUsage        = 2
	exitWorse        = 3 // a bad outcome, such as a broken budget, a worse verdict, a fault found, or things left by a CNI
	exitInconclusive = 4 // no outcome: something could not be decided
	exitInterrupted  = 130
)

var errInterrupted = errors.New("interrupted")

// exitError is an error with its exit code. quiet means that the error has been printed already.
type exitError struct {
	code  int
	quiet bool
	err   error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError wraps err so that the exit code is exitUsage: the user's input is wrong. It returns nil for nil.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUsage, err: err}
}

// commandUsageError is like usageError, and adds a hint that points to the help of cmd.
func commandUsageError(cmd *cobra.Command, err error) error {
	return usageError(advice.With(err, "see "+cmd.CommandPath()+" --help"))
}

// quietError returns a quiet error with an exit code, for a command that has printed its outcome already.
func quietError(code int) error {
	return &exitError{code: code, quiet: true, err: errors.New("failed")}
}

// loudPart returns err without the quiet errors that are joined in it, nil if nothing is left.
func loudPart(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return errors.Join(each.Of(joined.Unwrap(), loudPart)...)
	}
	var coded *exitError
	if errors.As(err, &coded) && coded.quiet {
		return nil
	}
	return err
}

// reportError prints err and its hint to stderr, except for quiet parts, and returns its exit code; exitFine for nil.
func (p *program) reportError(err error) int {
	if err == nil {
		return exitFine
	}
	code := exitFailed
	var coded *exitError
	var faults position.Faults
	var config *kube.ConfigError
	switch {
	case errors.As(err, &coded):
		code = coded.code
		if coded.quiet {
			if err = loudPart(err); err == nil {
				return code
			}
		}
	case errors.As(err, &faults), errors.As(err, &config):
		code = exitUsage
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		code = exitInterrupted
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(p.stderr, "cnibench: %s\n", line)
	}
	if advice := advice.Of(err); advice != "" {
		fmt.Fprintf(p.stderr, "hint: %s\n", advice)
	}
	return code
}
