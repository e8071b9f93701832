package adapter

import (
	"cmp"
	"fmt"
	"strings"
)

// kinds maps errors of tools and kernels to kinds of failure.
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

// FailureKind returns the kind of failure that the message of a tool or kernel describes, "error" if it is unknown.
func FailureKind(message string) string {
	low := strings.ToLower(message)
	for _, k := range kinds {
		if strings.Contains(low, k.says) {
			return k.kind
		}
	}
	return "error"
}

// Run collects the lines of one run and converts them into a reading.
type Run interface {
	// Take reads one line.
	Take(batch *Batch, line string) error
	// End returns the reading of the run, nil if it has none; it adds to batch what was left out.
	End(batch *Batch) (*Reading, error)
}

// RunText decodes the text of one or several runs. Lines before the first run belong to it.
type RunText[R Run] struct {
	Tool string
	New  func() R
	// After returns the run that follows run; nil means New. After can keep the head of a table with a run in each row.
	After func(run R) R
	// Again reports whether line repeats an error or a total of run. Then the next run has begun, without its usual first
	// line. nil means never.
	Again func(run R, line string) bool
	// Over reports whether run failed before its first line, so that the next first line begins another run; nil means
	// never.
	Over func(run R) bool
	// Begins reports whether line is the first line of a run. run has read the lines before.
	Begins func(run R, line string) bool
	// Indented keeps the space before a line.
	Indented bool
	// Foreign reports whether line, which follows the lines of run, is not the tool's; nil means never. Such lines, and
	// lines that are marked as headings, describe the run below them.
	Foreign func(run R, line string) bool
}

// Decode decodes b. Its error lists the faults of all lines and runs. It also fails if b has more than MaxReadings
// trials.
func (t RunText[R]) Decode(b []byte) (Batch, error) {
	batch := Batch{Tool: t.Tool}
	var faults Faults
	run, first, begun, number, sound := t.New(), 1, false, 0, 0
	var heading string // heading of this and later runs up to the next heading, and text since
	var above []string
	var last string // line that is not blank
	end := func() {
		r, err := run.End(&batch)
		switch {
		case err != nil && len(faults) == sound: // parts missing because of a faulty line are not further faults
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
		line = line[strings.LastIndexByte(line, '\r')+1:] // the text that a terminal shows of a line that was overwritten
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

// MaxFaults bounds the faults in an error: a file of another format has a fault in every line.
const MaxFaults = 50

// Faults is a list of everything that is wrong with an input, as one error with a line for each.
type Faults []string

// Add adds a fault as one line of text. line is the line of the input, counted from 1, or 0 for the whole input. Faults
// beyond MaxFaults become "and more".
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

// Err returns the faults as an error, nil if there are none.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// Error lists the faults, one in each line.
func (fs Faults) Error() string { return strings.Join(fs, "\n") }
