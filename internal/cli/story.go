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
	"github.com/cnibench/cnibench/internal/measure/result"
)

// story tells how a run goes, on stderr: one line that is overwritten on a terminal, a line for each trial if asked
// for, and otherwise nothing but what the user should know.
type story struct {
	w              io.Writer
	tty            bool
	verbose, quiet bool
	width          int
	drawn          bool
}

func (p *program) newStory(verbose, quiet bool) *story {
	s := &story{w: p.stderr, verbose: verbose, quiet: quiet, width: 80}
	if f, ok := p.stderr.(*os.File); ok && !quiet && term.IsTerminal(int(f.Fd())) {
		s.tty = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
			s.width = width
		}
	}
	return s
}

// event shows an event of a run.
func (s *story) event(e run.Event) {
	if e.Note != "" {
		s.note("%s", e.Note)
		return
	}
	if e.Step != "" {
		s.step("%s", e.Step)
		return
	}
	if s.verbose {
		s.clear()
		fmt.Fprintf(s.w, "%d/%d  %s  repetition %d  %s\n", e.Done, e.Total, e.Record.Key(), e.Record.Repetition, outcomeOf(e.Record))
	}
	percent := 100
	if e.Total > 0 {
		percent = 100 * e.Done / e.Total
	}
	s.draw(fmt.Sprintf("%3d%%  %d/%d  %s left  %s", percent, e.Done, e.Total, e.Left.Round(time.Second), e.Record.Key()))
}

func outcomeOf(r *result.Record) string {
	if r.Error != nil {
		return "failed: " + r.Error.Kind + ": " + r.Error.Message
	}
	return time.Duration(r.WallNs).Round(time.Millisecond).String()
}

// step says what takes its time before there are trials.
func (s *story) step(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if s.verbose {
		s.note("%s", line)
		return
	}
	s.draw(line)
}

// draw overwrites the line at the bottom of a terminal.
func (s *story) draw(line string) {
	if !s.tty {
		return
	}
	if len(line) >= s.width {
		line = line[:s.width-1]
	}
	fmt.Fprintf(s.w, "\r\x1b[K%s", line)
	s.drawn = true
}

// clear takes the line at the bottom away.
func (s *story) clear() {
	if s.drawn {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.drawn = false
	}
}

// note says something that stays.
func (s *story) note(format string, args ...any) {
	if s.quiet {
		return
	}
	s.clear()
	fmt.Fprintf(s.w, "cnibench: "+format+"\n", args...)
}

// printVerifierLogs names the profiles whose BPF program the verifier refused; verbose prints its log.
func printVerifierLogs(w io.Writer, logs map[string]string, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		if !verbose {
			fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program; -v prints its log\n", name)
			continue
		}
		fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program:\n%s\n", name, strings.TrimRight(logs[name], "\n"))
	}
}
