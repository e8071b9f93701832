package drive

import "fmt"

// Kinds of failure of a tool, besides those that it reports itself.
const (
	// KindMissing: the program is not installed.
	KindMissing = "tool missing"
	// KindOutput: what it wrote is nothing, or cannot be read.
	KindOutput = "tool output"
	// KindExit: it ended as failed, and did not say why in a form that is known.
	KindExit = "tool exit"
	// KindTimeout: it had not ended when it should have.
	KindTimeout = "timeout"
	// KindStart: it did not come up.
	KindStart = "tool start"
)

// Error says why a trial by a tool failed.
type Error struct {
	// Kind can be counted: one of those above, or the kind of the failure that the tool reported.
	Kind string
	// Tool is which; Message is why.
	Tool, Message string
}

func (e *Error) Error() string { return e.Tool + ": " + e.Message }

// Errorf makes an Error.
func Errorf(kind, tool, format string, args ...any) *Error {
	return &Error{Kind: kind, Tool: tool, Message: fmt.Sprintf(format, args...)}
}
