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
		s.tty, s.live.options = true, terminal(f)
		s.size = func() (int, int) {
			if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 20 && height > 1 {
				return width, height
			}
			return 80, 24
		}
	}
	return s
}

// event shows an event of a run.
func (s *story) event(e run.Event) {
	switch {
	case e.Note != "":
		s.note("%s", e.Note)
	case e.Step != "":
		s.step("%s", e.Step)
	default:
		s.trial(e)
	}
}

// trial shows a trial that has ended.
func (s *story) trial(e run.Event) {
	if s.quiet || s.live.header == nil {
		return
	}
	if turned := s.live.at.Repetition; turned > 0 && turned != e.Record.Repetition && !s.tty && !s.verbose {
		s.live.judge()
		s.note("%s", text.Line(s.live.interim, s.live.at))
	}
	s.live.trial(e)
	switch {
	case s.verbose:
		s.clear()
		outcome := time.Duration(e.Record.WallNs).Round(time.Millisecond).String()
		if why := e.Record.Error; why != nil {
			outcome = "failed: " + why.Kind + ": " + why.Message
		}
		fmt.Fprintf(s.w, "%d/%d  %s  repetition %d  %s\n", e.Done, e.Total, e.Record.Key(), e.Record.Repetition, outcome)
		s.draw(text.Line(report.Interim{}, s.live.at))
	case s.tty:
		s.frame()
	}
}

// frame draws the live view, unless the last frame is younger than redraw.
func (s *story) frame() {
	if s.tty && s.live.begun() && s.live.now().Sub(s.live.last) >= redraw {
		width, height := s.size()
		s.draw(s.live.frame(width-1, height-1)...)
	}
}

// step shows what the run does before or between trials. With -v it prints a note; otherwise it shows it only on a terminal.
func (s *story) step(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	switch {
	case s.verbose:
		s.note("%s", line)
	case s.live.begun():
		s.live.at.Doing = line
		s.live.last = time.Time{} // it may take long
		s.frame()
	default:
		s.draw(line)
	}
}

// draw replaces the lines at the bottom of a terminal, in one write. It changes no mode of the terminal, so nothing has to
// be restored, even if the program is killed. It does nothing if stderr is not a terminal.
func (s *story) draw(lines ...string) {
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
	fmt.Fprint(s.w, s.rewind(width)+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K")
	s.drawn = lines
}

// rewind returns the escape sequence that moves the cursor to the start of the drawn lines and erases them. width is the
// terminal's width in columns now, at which a drawn line may take several rows.
func (s *story) rewind(width int) string {
	rows := 0
	for _, l := range s.drawn {
		rows += max(1, (number.Width(unstyled(l))+width-1)/width)
	}
	switch {
	case rows == 0:
		return ""
	case rows == 1:
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows-1)
}

// unstyled returns s without escape sequences.
func unstyled(s string) string {
	var b strings.Builder
	for i, part := range strings.Split(s, "\x1b[") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "m")
		}
		b.WriteString(part)
	}
	return b.String()
}

// clear erases the lines that draw has drawn.
func (s *story) clear() {
	if len(s.drawn) > 0 {
		width, _ := s.size()
		fmt.Fprint(s.w, s.rewind(width))
		s.drawn = nil
	}
}

// note prints a line that is not overwritten.
func (s *story) note(format string, args ...any) {
	if s.quiet {
		return
	}
	s.clear()
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
