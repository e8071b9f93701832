package drive

import "fmt"

// Kinds of failure of a tool, besides those that it reports itself.
const (
	// KindMissing: the program is not installed.
	KindMissing = "tool missing"
	// KindOutput: its output is empty or malformed.
	KindOutput = "tool output"
	// KindExit: it failed without a known message.
	KindExit = "tool exit"
	// KindTimeout: it did not end in time.
	KindTimeout = "timeout"
	// KindStart: it did not start.
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
