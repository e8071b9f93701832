package external

import (
	"fmt"
	"strings"
)

// fault is one thing that is wrong with an input.
type fault struct {
	// line counts from 1; 0 is the input as a whole.
	line    int
	message string
}

// faults is everything that is wrong with an input, as one error with a line for each.
type faults []fault

// add notes a fault; beyond what is written out they are not kept.
func (fs *faults) add(line int, format string, args ...any) {
	if len(*fs) <= mostFaults {
		*fs = append(*fs, fault{line, fmt.Sprintf(format, args...)})
	}
}

// asError returns nil when there is no fault.
func (fs faults) asError() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// mostFaults is how many are written out: a file of another format has one in every line.
const mostFaults = 50

func (fs faults) Error() string {
	var b strings.Builder
	for i, f := range fs {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == mostFaults {
			b.WriteString("and more")
			break
		}
		if f.line > 0 {
			fmt.Fprintf(&b, "line %d: ", f.line)
		}
		b.WriteString(f.message)
	}
	return b.String()
}
