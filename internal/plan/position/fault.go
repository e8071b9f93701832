package position

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostFaults is how many faults Error lists at most.
const mostFaults = 50

// Fault is one mistake in a file.
type Fault struct {
	// File and Line locate the mistake. File is empty for a mistake outside of a single file. Line is 0 for the file as
	// a whole.
	File string
	Line int
	// Field is the dotted path of the key; "" for the file as a whole.
	Field string
	// Message describes what is wrong and what is allowed.
	Message string
	// Item is the name within Field that is wrong, if Field is a mapping of names that the user chooses; otherwise it
	// is "".
	Item string
}

// String returns "file:line: field: message". It leaves out the parts that are not known.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Faults is an error that lists every mistake in one or several files.
type Faults []Fault

// Error returns one line for each of the first 50 faults, and the number of further faults.
func (fs Faults) Error() string {
	var lines []string
	for i, f := range fs {
		if i == mostFaults {
			lines = append(lines, fmt.Sprintf("and %d more", len(fs)-i))
			break
		}
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults as an error, nil if there are none.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Add adds a fault of a field whose line is not known yet.
func (fs *Faults) Add(field, format string, args ...any) {
	*fs = append(*fs, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
}

// AddItem adds a fault of the name item within field.
func (fs *Faults) AddItem(field, item, format string, args ...any) {
	*fs = append(*fs, Fault{Field: field, Item: item, Message: fmt.Sprintf(format, args...)})
}

// Sort sorts the faults by line. Those without a line come first.
func (fs Faults) Sort() {
	slices.SortStableFunc(fs, func(f, g Fault) int { return cmp.Compare(f.Line, g.Line) })
}
