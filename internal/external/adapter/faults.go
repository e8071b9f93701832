package adapter

import (
	"fmt"
	"strings"
)

// MaxFaults is how many faults an error lists: a file of another format has one in every line.
const MaxFaults = 50

// fault is one thing that is wrong with an input.
type fault struct {
	// line counts from 1; 0 is the input as a whole.
	line    int
	message string
}

// Faults is everything that is wrong with an input, as one error with a line for each.
type Faults []fault

// Add notes a fault; those beyond MaxFaults are dropped.
func (fs *Faults) Add(line int, format string, args ...any) {
	if len(*fs) <= MaxFaults {
		*fs = append(*fs, fault{line, fmt.Sprintf(format, args...)})
	}
}

// Err returns nil if there is no fault.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Error lists the faults, one in each line.
func (fs Faults) Error() string {
	var b strings.Builder
	for i, f := range fs {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == MaxFaults {
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

// OneLine joins the lines of an error that has several.
func OneLine(err error) error { return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "\n", "; ")) }
