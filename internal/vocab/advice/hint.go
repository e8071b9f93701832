// Package advice joins an error to one line of advice on how to get past it.
//
// An error says what went wrong; a hint says what to do next. They are kept apart so that a caller can print the
// advice on a line of its own and a test can match the error alone.
package advice

import "errors"

// hinted is an error with advice.
type hinted struct {
	err    error
	advice string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// With returns err carrying advice. It returns nil when err is nil.
func With(err error, advice string) error {
	if err == nil {
		return nil
	}
	return &hinted{err: err, advice: advice}
}

// Of returns the advice nearest to the surface of err, or "" without one.
func Of(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.advice
	}
	return ""
}
