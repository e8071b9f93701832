package external

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/cnibench/cnibench/internal/external/adapter"
)

// usual are the directories that are searched if the search path does not have a program.
var usual = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}

// Find returns the absolute path of a program. It fails with an *Error of KindMissing if the program is not installed.
func Find(tool, program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range usual {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", Errorf(KindMissing, tool, "program %s not found: install it, or leave the tool out", program)
}

// parseVersion returns the version in the output of a tool, "" without one.
func parseVersion(s *adapter.Sender, out []byte) string {
	if m := s.VersionIn.Regexp().FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return ""
}

// Environment is the environment of every tool: numbers in the C locale, and the usual search path.
var Environment = []string{"LC_ALL=C", "LANG=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// Kinds of failure of a tool, in addition to those that it reports itself.
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
	// Kind is one of the kinds above, or the kind of the failure that the tool reported. Failures are counted by kind.
	Kind string
	// Tool is the tool's name, Message the reason.
	Tool, Message string
}

func (e *Error) Error() string { return e.Tool + ": " + e.Message }

// Errorf returns an Error with a formatted message.
func Errorf(kind, tool, format string, args ...any) *Error {
	return &Error{Kind: kind, Tool: tool, Message: fmt.Sprintf(format, args...)}
}
