package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// screen is a terminal: what it shows of the bytes that are written to it. It fails on a sequence that it does not know,
// and so on any change of the terminal's state.
type screen struct {
	t          *testing.T
	lines      []string
	row, wrote int
	column     int
}

func (s *screen) Write(b []byte) (int, error) {
	s.wrote++
	for text := string(b); text != ""; {
		for s.row >= len(s.lines) {
			s.lines = append(s.lines, "")
		}
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= 'A' && r <= 'z' }) + 2
			s.control(text[2:end], text[end])
			text = text[end+1:]
		case text[0] == '\r':
			s.column, text = 0, text[1:]
		case text[0] == '\n':
			s.row, text = s.row+1, text[1:]
		default:
			r := []rune(text)[0]
			line := append([]rune(s.lines[s.row]), []rune(strings.Repeat(" ", max(0, s.column-len([]rune(s.lines[s.row])))))...)
			s.lines[s.row] = string(append(line[:s.column:s.column], append([]rune{r}, line[min(len(line), s.column+1):]...)...))
			s.column++
			text = text[len(string(r)):]
		}
	}
	return len(b), nil
}

func (s *screen) control(argument string, command byte) {
	switch command {
	case 'A':
		n, err := strconv.Atoi(argument)
		if err != nil || n > s.row {
			s.t.Fatalf("up by %q from line %d", argument, s.row)
		}
		s.row -= n
	case 'J':
		s.lines = s.lines[:s.row+1]
		fallthrough
	case 'K':
		s.lines[s.row] = string([]rune(s.lines[s.row])[:min(s.column, len([]rune(s.lines[s.row])))])
	case 'm':
	default:
		s.t.Fatalf("sequence %q%c", argument, command)
	}
}

func (s *screen) String() string { return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") }

// recorded is a run on the paths of the preset quick.
func recorded(repetitions int) reporttest.Result {
	r := reporttest.NinePaths(repetitions)
	r.Records = slices.DeleteFunc(r.Records, func(r result.Record) bool {
		return r.Type == result.TypeTrial && !slices.Contains(plan.Preset("quick").Paths, r.Path) && r.Path != plan.ZeroPath
	})
	return r
}

// replay tells a story what a run told, by the clock of the trials, and calls after with each trial.
func replay(s *story, from reporttest.Result, after func(r result.Record)) {
	clock := from.Header.Created
	s.live.now = func() time.Time { return clock }
	s.live.beginResult(from.Header)
	var trials []result.Record
	for _, r := range from.Records {
		if r.Type == result.TypeTrial {
			trials = append(trials, r)
		}
	}
	for i, r := range trials {
		clock = r.Started.Add(time.Duration(r.WallNs))
		left := time.Duration(len(trials)-i-1) * time.Duration(r.WallNs)
		s.showEvent(run.Event{Done: i + 1, Total: len(trials), Left: left, Record: &r})
		after(r)
	}
}

// onTerminal is a story on a terminal of that size.
func onTerminal(t *testing.T, width, height *int, o text.Options) (*story, *screen) {
	shown := &screen{t: t}
	return &story{w: shown, tty: true, size: func() (int, int) { return *width, *height }, live: live{options: o}}, shown
}

// TestLiveFrames holds what a terminal shows of a recorded run, at the end of each repetition.
func TestLiveFrames(t *testing.T) {
	for name, size := range map[string][2]int{"live-80.txt": {80, 24}, "live-44.txt": {44, 12}} {
		s, shown := onTerminal(t, &size[0], &size[1], text.Options{})
		from := recorded(5)
		var out bytes.Buffer
		last := 0
		replay(s, from, func(r result.Record) {
			if r.Repetition != last {
				last = r.Repetition
				fmt.Fprintf(&out, "-- repetition %d --\n%s\n", last, shown)
			}
			for line := range strings.Lines(shown.String()) {
				if w := number.Width(strings.TrimSuffix(line, "\n")); w >= size[0] {
					t.Fatalf("%s: %d columns: %s", name, w, line)
				}
			}
			if n := len(shown.lines); n >= size[1] {
				t.Fatalf("%s: %d lines", name, n)
			}
		})
		fmt.Fprintf(&out, "-- end --\n%s\n", shown)
		golden.Check(t, name, out.Bytes())
		if s.eraseLines(); shown.String() != "" {
			t.Errorf("left behind:\n%s", shown)
		}
		if s.eraseLines(); shown.wrote == 0 {
			t.Error("no frame was drawn")
		}
	}
}

// TestLiveResizes: whatever the terminal's size becomes, a frame fits, and notes stay above it.
func TestLiveResizes(t *testing.T) {
	width, height := 60, 40
	s, shown := onTerminal(t, &width, &height, text.Options{Color: true})
	n := 0
	replay(s, recorded(2), func(result.Record) {
		if n++; n%50 == 0 {
			width, height = width+7, 8+n%30
			s.eraseLines()
			s.printNote("note %d", n)
		}
	})
	s.eraseLines()
	if got := strings.Count(shown.String(), "cnibench: note"); got != n/50 || strings.Count(shown.String(), "\n") != got-1 {
		t.Errorf("%d notes:\n%s", got, shown)
	}
	s.drawn = []string{strings.Repeat("x", 100), "\x1b[1mbold\x1b[0m"}
	if got := s.rewindSequence(40); got != "\x1b[3A\r\x1b[J" {
		t.Errorf("a line of 100 columns folded at 40: %q", got)
	}
}

// TestLivePlain: without a terminal there is a line for each repetition but the last, which the report follows, and no
// escape sequence; with -q there is nothing.
func TestLivePlain(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		s := &story{w: &out, quiet: quiet, size: func() (int, int) { return 80, 24 }}
		replay(s, recorded(5), func(result.Record) {})
		if quiet {
			if out.Len() > 0 {
				t.Errorf("-q says %s", &out)
			}
			continue
		}
		golden.Check(t, "live-plain.txt", out.Bytes())
		if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 4 {
			t.Errorf("got\n%s", &out)
		}
	}
}
