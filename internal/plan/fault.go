package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a plan.
type Fault struct {
	// File and Line say where, if the plan was read from a file.
	File string
	Line int
	// Field is the key of the plan file that is wrong, "" for the file as a whole.
	Field string
	// Message says what is wrong and what is allowed.
	Message string
	// item is the name within Field that is wrong, if Field has names of the user's own.
	item string
}

// String returns "file:line: field: message" with the parts that are known.
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

// Faults is everything that is wrong with a plan, as one error with a line for each.
type Faults []Fault

func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// asError returns nil when there is no fault, so that an empty list is not an error.
func (fs Faults) asError() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Sort puts the faults into the order of their lines; those without one come first.
func (fs Faults) Sort() {
	slices.SortStableFunc(fs, func(f, g Fault) int { return cmp.Compare(f.Line, g.Line) })
}

// addItem adds a fault of one name within field.
func (fs *Faults) addItem(field, item, format string, args ...any) {
	fs.add(field, format, args...)
	(*fs)[len(*fs)-1].item = item
}

func (fs *Faults) add(field, format string, args ...any) {
	*fs = append(*fs, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
}
