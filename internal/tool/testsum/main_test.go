package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func run(lines ...string) (tally, string) {
	t := newTally()
	var out strings.Builder
	_ = t.read(strings.NewReader(strings.Join(lines, "\n")), &out)
	t.close(&out)
	return t, out.String()
}

func TestSkipsAreNamedWithTheirReason(t *testing.T) {
	got, out := run(
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:5: the kernel has no ipvlan\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    a_test.go:5: the kernel has no ipvlan\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestC"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"pass","Package":"p"}`)
	if got.passed != 1 || got.failed != 0 || got.count != 2 || len(got.skipped) != 1 {
		t.Errorf("tally %+v", got)
	}
	if !strings.Contains(out, "  p: a_test.go:5: the kernel has no ipvlan\n    2: TestA, TestC\n") || !strings.HasSuffix(out, "\n1 passed, 0 failed, 2 skipped\n") {
		t.Errorf("output:\n%s", out)
	}
}

func TestFailuresAreShownOnce(t *testing.T) {
	got, out := run(
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    got 1, want 2\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p"}`)
	if got.failed != 1 || strings.Count(out, "got 1, want 2") != 1 || !strings.HasSuffix(out, "1 failed, 0 skipped\nfailed: p TestA\n") {
		t.Errorf("tally %+v, output:\n%s", got, out)
	}
}

// A test that fails, and passes when it runs again under the race detector, has failed, and its words are shown.
func TestAFailureIsNotForgotten(t *testing.T) {
	got, out := run(
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    got 1, want 2\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    fine\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"pass","Package":"p"}`)
	if got.failed != 1 || !strings.Contains(out, "got 1, want 2") || strings.Contains(out, "fine") {
		t.Errorf("tally %+v, output:\n%s", got, out)
	}
}

// TestElapsed: the time of a package is that of its tests, without its build and the wait for its turn.
func TestElapsed(t *testing.T) {
	_, out := run(
		`{"Time":"2026-01-02T03:04:05Z","Action":"start","Package":"p"}`,
		`{"Time":"2026-01-02T03:05:05Z","Action":"run","Package":"p","Test":"TestA"}`,
		`{"Time":"2026-01-02T03:05:07Z","Action":"pass","Package":"p","Test":"TestA","Elapsed":2}`,
		`{"Time":"2026-01-02T03:05:07.5Z","Action":"pass","Package":"p","Elapsed":62.5}`,
		`{"Time":"2026-01-02T03:06:00Z","Action":"run","Package":"p","Test":"TestA"}`,
		`{"Time":"2026-01-02T03:06:01Z","Action":"pass","Package":"p","Test":"TestA","Elapsed":1}`,
		`{"Time":"2026-01-02T03:06:01Z","Action":"pass","Package":"p","Elapsed":1}`)
	if !strings.HasPrefix(out, "ok    p  2.5s\nok    p  1.0s\n") {
		t.Errorf("output:\n%s", out)
	}
}

func TestABrokenBuildFails(t *testing.T) {
	got, out := run(
		`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: undefined: y\n"}`,
		`{"ImportPath":"p","Action":"build-fail"}`,
		`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}`)
	if got.failed == 0 || !strings.Contains(out, "undefined: y") {
		t.Errorf("tally %+v, output:\n%s", got, out)
	}
}

// TestAgain: a failed test runs again by its package and its own name. One that passes then is shown and does not count as
// failed; what no rest of the machine mends does not run again.
func TestAgain(t *testing.T) {
	failed := func(test, said string) []string {
		return []string{
			`{"Action":"output","Package":"p","Test":"` + test + `","Output":"` + said + `\n"}`,
			`{"Action":"fail","Package":"p","Test":"` + test + `"}`,
		}
	}
	end := []string{`{"Action":"fail","Package":"p"}`}
	var many []string
	for i := range few + 1 {
		many = append(many, failed(fmt.Sprint("Test", i), "late")...)
	}
	passes, fails := `{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p","Test":"TestA"}`
	for name, tc := range map[string]struct {
		lines  []string
		second string
		err    error
		runs   int
		failed int
	}{
		"passes":            {lines: slices.Concat(failed("TestA/b", "late"), failed("TestA", "sub"), end), second: passes, runs: 1},
		"fails again":       {lines: slices.Concat(failed("TestA", "late"), end), second: fails, runs: 1, failed: 1},
		"does not run":      {lines: slices.Concat(failed("TestA", "late"), end), runs: 1, failed: 1},
		"its command fails": {lines: slices.Concat(failed("TestA", "late"), end), second: passes, err: errors.New("exit status 1"), runs: 1, failed: 1},
		"a race":            {lines: slices.Concat(failed("TestA", "testing.go:1: race detected during execution of test"), end), second: passes, failed: 1},
		"a panic":           {lines: slices.Concat(failed("TestA", "x\\npanic: nil map"), end), second: passes, failed: 1},
		"a build":           {lines: []string{`{"ImportPath":"p","Action":"build-fail"}`}, second: passes, failed: 1},
		"too many":          {lines: slices.Concat(many, end), second: passes, failed: few + 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, runs := newTally(), 0
			if err := got.read(strings.NewReader(strings.Join(tc.lines, "\n")), io.Discard); err != nil {
				t.Fatal(err)
			}
			got.again(io.Discard, func(pkg, pattern string) ([]byte, error) {
				runs++
				if pkg != "p" || pattern != "^TestA$" {
					t.Errorf("%s of %s runs again", pattern, pkg)
				}
				return []byte(tc.second), tc.err
			})
			var out strings.Builder
			got.close(&out)
			if runs != tc.runs || got.failed != tc.failed || !strings.Contains(out.String(), fmt.Sprintf(" %d failed,", tc.failed)) {
				t.Errorf("%d runs, %d failed, want %d and %d:\n%s", runs, got.failed, tc.runs, tc.failed, out.String())
			}
			if tc.failed == 0 && (got.passed != 2 || !strings.Contains(out.String(), "passed when it ran again by itself: p TestA/b\nlate\n")) {
				t.Errorf("%d passed:\n%s", got.passed, out.String())
			}
		})
	}
}

func TestALongOutputEndsWithItsEnd(t *testing.T) {
	line := strings.Repeat("x", 1000)
	lines := []string{`{"Action":"skip","Package":"p","Test":"TestB"}`}
	for range 100 {
		lines = append(lines, `{"Action":"output","Package":"p","Test":"TestA","Output":"`+line+`\n"}`)
	}
	lines = append(lines, `{"Action":"output","Package":"p","Test":"TestA","Output":"got 1, want 2\n"}`, `{"Action":"fail","Package":"p","Test":"TestA"}`)
	_, out := run(lines...)
	if len(out) > most+1000 || !strings.Contains(out, line+"\ngot 1, want 2\n\n0 passed") || strings.Index(out, "skipped:") > strings.Index(out, "--- FAIL") {
		t.Errorf("%d bytes:\n%s", len(out), out)
	}
}
