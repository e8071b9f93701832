package adapter

import (
	"cmp"
	"fmt"
	"strings"
)

// kinds map what tools and kernels say to the words that failures are counted by.
var kinds = []struct{ says, kind string }{
	{"refused", "connection refused"},
	{"timed out", "timeout"},
	{"timeout", "timeout"},
	{"deadline exceeded", "timeout"},
	{"interrupt", "interrupted"},
	{"terminated", "interrupted"},
	{"unreachable", "unreachable"},
	{"no route", "unreachable"},
	{"reset by peer", "reset"},
	{"closed", "closed"},
}

// FailureKind finds the countable word for a message.
func FailureKind(message string) string {
	low := strings.ToLower(message)
	for _, k := range kinds {
		if strings.Contains(low, k.says) {
			return k.kind
		}
	}
	return "error"
}

// Run reads the lines of one run.
type Run interface {
	// Take reads one line.
	Take(batch *Batch, line string) error
	// End returns the reading of the run, nil if it has none; batch says then what was left out.
	End(batch *Batch) (*Reading, error)
}

// RunText decodes the text of one run or of several. Lines before the first run belong to it.
type RunText[R Run] struct {
	Tool string
	New  func() R
	// After makes the run that follows one; nil is New. A table may hold a run in each row below one head.
	After func(run R) R
	// Again returns whether line is the complaint of run once more, with which the next run failed without a beginning; nil is
	// never.
	Again func(run R, line string) bool
	// Over returns whether run failed before it began, so that what begins then is another; nil is never.
	Over func(run R) bool
	// Begins returns whether line begins a run; run holds the lines before it.
	Begins func(run R, line string) bool
	// Indented keeps the space before a line.
	Indented bool
	// Foreign returns whether line, which follows the lines of run, is not the tool's; nil is never. Such a line and those that
	// are marked as headings tell the run below them apart.
	Foreign func(run R, line string) bool
}

// Decode reads b. It lists the faults of all lines.
func (t RunText[R]) Decode(b []byte) (Batch, error) {
	batch := Batch{Tool: t.Tool}
	var faults Faults
	run, first, begun, number, sound := t.New(), 1, false, 0, 0
	var heading string // of the run and of those behind it up to the next heading, and what has come since
	var above []string
	var last string // line that is not blank
	end := func() {
		r, err := run.End(&batch)
		switch {
		case err != nil && len(faults) == sound: // what a faulty line lacks is not a fault of its own
			faults.Add(first, "the run that begins here: %s", err)
		case err == nil && r != nil:
			r.Above(heading)
			batch.Readings = append(batch.Readings, *r)
		}
		sound = len(faults)
	}
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimRight(line, " \t\r\n")
		line = line[strings.LastIndexByte(line, '\r')+1:] // what a terminal shows of a line that was written over
		if !t.Indented {
			line = strings.TrimSpace(line)
		}
		if again := t.Again != nil && t.Again(run, line); again || t.Begins(run, line) {
			if begun || again || t.Over != nil && t.Over(run) {
				end()
				if t.After != nil {
					run = t.After(run)
				} else {
					run = t.New()
				}
			}
			begun, first = !again, number
			if len(above) == 0 && t.Foreign == nil && named.MatchString(last) {
				AddName(&above, Heading(last))
			}
			heading, above = cmp.Or(strings.Join(above, " "), heading), nil
		} else if IsMarked(line) || t.Foreign != nil && t.Foreign(run, line) {
			AddName(&above, Heading(line))
		}
		last = cmp.Or(line, last)
		if len(batch.Readings) >= MaxReadings {
			return Batch{}, fmt.Errorf("more than %d trials", MaxReadings)
		}
		if err := run.Take(&batch, line); err != nil {
			faults.Add(number, "%s", err)
		}
	}
	end()
	return batch, faults.Err()
}

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
