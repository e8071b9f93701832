package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Progress is the progress of a run.
type Progress struct {
	// Done and Total count trials.
	Done, Total int
	// Left is the estimated time until the end of the run.
	Left time.Duration
	// Repetition is the number of the current repetition; 0 before the first trial. Repetitions is the planned number.
	Repetition, Repetitions int
	// Doing describes what the run does now, or what it measured last.
	Doing string
	// Stops is true if the run ends as soon as every comparison is decided.
	Stops bool
}

// Percent returns the share of the trials that are done, in percent from 0 to 100.
func (p Progress) Percent() int {
	if p.Total == 0 {
		return 0
	}
	return min(100, 100*p.Done/p.Total)
}

// Frame returns the lines of a live view: the progress of the run, and the table of the trials so far. It has at most
// height lines of at most o.Width columns.
func Frame(i report.Interim, at Progress, o Options, height int) []string {
	p := printer{width: max(20, o.Width), color: o.Color, ascii: o.ASCII, live: true}
	p.writeLine(p.progressLine(at))
	if at.Doing != "" {
		p.writeLine(p.applyStyle(number.Truncate(p.toASCII(number.Clean(at.Doing)), p.width), dim))
	}
	if room := height - lineCount(p.String()) - 1; i.Summary != nil && room > tableLines+1 {
		p.writeSummaryTable(i.Summary, room)
		p.writeLine(number.Truncate(p.decidedText(i, at), p.width))
	}
	all := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	return all[:min(len(all), max(1, height))]
}

// progressLine returns the line with the percentage, the progress bar and the remaining time. It omits the bar if there is
// no room.
func (p *printer) progressLine(at Progress) string {
	left := at.Left.Round(time.Second).String() + " left"
	if at.Repetition > 0 {
		left = fmt.Sprintf("%s, repetition %d of %d", left, at.Repetition, max(at.Repetition, at.Repetitions))
	}
	const most = 30
	width := min(most, p.width-len(left)-8)
	text := fmt.Sprintf("%3d%%  %s", at.Percent(), left)
	if width >= 8 {
		done := width * at.Percent() / 100
		signs := []string{"█", "░"}
		if p.ascii {
			signs = []string{"#", "."}
		}
		text = fmt.Sprintf("%3d%% %s %s", at.Percent(), strings.Repeat(signs[0], done)+strings.Repeat(signs[1], width-done), left)
	}
	return number.Truncate(text, p.width)
}

// decidedText describes how many values of the table are decided, and what the signs mean.
func (p *printer) decidedText(i report.Interim, at Progress) string {
	text := fmt.Sprintf("decided: %d of %d", i.Decided, i.Compared)
	if at.Stops {
		text += "; stops when all is decided"
	}
	if p.ascii {
		return text + " (?: undecided)"
	}
	return text + " (▲ best, ▼ worse, ≈ same within " + i.Summary.Margin + ", ? undecided)"
}

// Line returns the progress and the result so far in one line, for output that is not a terminal.
func Line(i report.Interim, at Progress) string {
	text := fmt.Sprintf("repetition %d of %d: %d%%, %s left", at.Repetition, max(at.Repetition, at.Repetitions), at.Percent(), at.Left.Round(time.Second))
	if i.Compared > 0 {
		text += fmt.Sprintf("; decided: %d of %d", i.Decided, i.Compared)
	}
	if len(i.Leads) > 0 {
		text += "; ahead so far: " + strings.Join(i.Leads, ", ")
	}
	return text
}
