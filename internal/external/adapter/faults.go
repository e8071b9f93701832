package adapter

import (
	"fmt"
	"strings"
)

// MaxFaults is how many faults an error lists: a file of another format has one in every line.
const MaxFaults = 50

// Faults is everything that is wrong with an input, as one error with a line for each.
type Faults []string

// Add notes a fault, in one line of text: it is in the line of the input, counted from 1, or in the input as a whole if
// line is 0. Faults beyond MaxFaults become "and more".
func (fs *Faults) Add(line int, format string, args ...any) {
	switch message := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; "); {
	case len(*fs) == MaxFaults:
		*fs = append(*fs, "and more")
	case len(*fs) > MaxFaults:
	case line > 0:
		*fs = append(*fs, fmt.Sprintf("line %d: %s", line, message))
	default:
		*fs = append(*fs, message)
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
func (fs Faults) Error() string { return strings.Join(fs, "\n") }
