package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// story prints the progress of a run to stderr: on a terminal a live view that is overwritten (live.go), with -v a line for
// each trial, otherwise a line for each repetition and each note.
type story struct {
	w              io.Writer
	tty            bool
	verbose, quiet bool
	// size returns the size of the terminal, in columns and lines.
	size  func() (int, int)
	drawn []string
	live  live
}

func (p *program) newStory(verbose, quiet bool) *story {
	s := &story{w: p.stderr, verbose: verbose, quiet: quiet, size: func() (int, int) { return 80, 24 }, live: live{now: time.Now}}
	capable := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // of being overwritten
	if f, ok := p.stderr.(*os.File); ok && !quiet && capable && term.IsTerminal(int(f.Fd())) {
		s.tty, s.live.options = true, terminalOptions(f)
		s.size = func() (int, int) {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 20 && height > 1 {
				return width, height
			}
			return 80, 24
		}
	}
	return s
}

// showEvent shows an event of a run.
func (s *story) showEvent(e run.Event) {
	switch {
	case e.Note != "":
		s.printNote("%s", e.Note)
	case e.Step != "":
		s.showStep("%s", e.Step)
	default:
		s.showTrial(e)
	}
}

// showTrial shows a trial that has ended.
func (s *story) showTrial(e run.Event) {
	if s.quiet || s.live.header == nil {
		return
	}
	if turned := s.live.at.Repetition; turned > 0 && turned != e.Record.Repetition && !s.tty && !s.verbose {
		s.live.judgeTrials()
		s.printNote("%s", text.Line(s.live.interim, s.live.at))
	}
	s.live.addTrial(e)
	switch {
	case s.verbose:
		s.eraseLines()
		outcome := time.Duration(e.Record.WallNs).Round(time.Millisecond).String()
		if why := e.Record.Error; why != nil {
			outcome = "failed: " + why.Kind + ": " + why.Message
		}
		fmt.Fprintf(s.w, "%d/%d  %s  repetition %d  %s\n", e.Done, e.Total, e.Record.Key(), e.Record.Repetition, outcome)
		s.drawLines(text.Line(report.Interim{}, s.live.at))
	case s.tty:
		s.drawFrame()
	}
}

// drawFrame draws the live view, unless the last frame is younger than redraw.
func (s *story) drawFrame() {
	if s.tty && s.live.hasTrial() && s.live.now().Sub(s.live.last) >= redraw {
		width, height := s.size()
		s.drawLines(s.live.frameLines(width-1, height-1)...)
	}
}

// showStep shows what the run does before or between trials. With -v it prints a note; otherwise it shows it only on a
// terminal.
func (s *story) showStep(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	switch {
	case s.verbose:
		s.printNote("%s", line)
	case s.live.hasTrial():
		s.live.at.Doing = line
		s.live.last = time.Time{} // it may take long
		s.drawFrame()
	default:
		s.drawLines(line)
	}
}

// drawLines replaces the lines at the bottom of a terminal, in one write. It changes no mode of the terminal, so
// nothing has to be restored, even if the program is killed. It does nothing if stderr is not a terminal.
func (s *story) drawLines(lines ...string) {
	if !s.tty {
		return
	}
	width, _ := s.size()
	for i, l := range lines {
		if strings.Contains(l, "\x1b") {
			continue // a frame is as wide as the terminal
		}
		lines[i] = number.Truncate(number.Clean(l), width-1)
	}
	fmt.Fprint(s.w, s.rewindSequence(width)+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K")
	s.drawn = lines
}

// rewindSequence returns the escape sequence that moves the cursor to the start of the drawn lines and erases them.
// width is the terminal's width in columns now, at which a drawn line may take several rows.
func (s *story) rewindSequence(width int) string {
	rows := 0
	for _, l := range s.drawn {
		rows += max(1, (number.Width(stripEscapes(l))+width-1)/width)
	}
	switch {
	case rows == 0:
		return ""
	case rows == 1:
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows-1)
}

// stripEscapes returns s without escape sequences.
func stripEscapes(s string) string {
	var b strings.Builder
	for i, part := range strings.Split(s, "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		b.WriteString(part)
	}
	return b.String()
}

// eraseLines erases the lines that drawLines has drawn.
func (s *story) eraseLines() {
	if len(s.drawn) > 0 {
		width, _ := s.size()
		fmt.Fprint(s.w, s.rewindSequence(width))
		s.drawn = nil
	}
}

// printNote prints a line that is not overwritten.
func (s *story) printNote(format string, args ...any) {
	if s.quiet {
		return
	}
	s.eraseLines()
	fmt.Fprintf(s.w, "cnibench: "+format+"\n", args...)
}

// printVerifierLogs prints the profiles whose BPF program the verifier refused; with verbose also the verifier's logs.
func printVerifierLogs(w io.Writer, logs map[string]string, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		if !verbose {
			fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program; -v prints its log\n", name)
			continue
		}
		fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program:\n%s\n", name, strings.TrimRight(logs[name], "\n"))
	}
}
