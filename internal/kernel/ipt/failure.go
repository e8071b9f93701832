package ipt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// RestoreError is a refusal of iptables-restore or ipset restore.
type RestoreError struct {
	// Program is the path of what was run.
	Program string
	// Line is the number of the refused line in the input, from 1; 0 when the program did not say. Text is that line.
	Line int
	Text string
	// Output is what the program wrote to its standard error, trimmed.
	Output string
	// Err is how the program ended.
	Err error
}

func (e *RestoreError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v: %s", e.Program, e.Err, e.Output)
	}
	return fmt.Sprintf("%s: %v at line %d %q: %s", e.Program, e.Err, e.Line, e.Text, e.Output)
}

// Unwrap returns how the program ended.
func (e *RestoreError) Unwrap() error { return e.Err }

// Both flavours and ipset name the line, each in its own words: "line 7 failed", "line 7: RULE_APPEND failed",
// "Error occurred at line: 7", "Error in line 7".
var lineNumber = regexp.MustCompile(`(?i)\bline:? (\d+)`)

// shown limits what of a long line or of a long complaint goes into the message, in bytes.
const shown = 400

// refused makes the error for a program that failed over input.
func refused(program, input, stderr string, err error) *RestoreError {
	e := &RestoreError{Program: program, Output: clip(strings.Join(strings.Fields(stderr), " ")), Err: err}
	m := lineNumber.FindStringSubmatch(stderr)
	if m == nil {
		return e
	}
	n, convErr := strconv.Atoi(m[1])
	lines := strings.Split(input, "\n")
	if convErr != nil || n < 1 || n > len(lines) {
		return e
	}
	e.Line, e.Text = n, clip(lines[n-1])
	return e
}

const tooLong = "the nft flavour hands all rules of a table over in one message, and without the rights of the machine's root the kernel " +
	"limits it to net.core.wmem_max: run as root, raise that sysctl, use the legacy flavour, or fewer Services"

// advised joins e to advice where there is some to give.
func advised(e *RestoreError) error {
	if strings.Contains(e.Output, "Message too long") {
		return advice.With(e, tooLong)
	}
	return e
}

func clip(s string) string {
	if len(s) <= shown {
		return s
	}
	return s[:shown] + "..."
}
