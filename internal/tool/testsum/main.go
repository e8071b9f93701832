// Command testsum reads the output of `go test -json` and ends it with a summary: the output of what failed, every
// skipped test with its reason, and one line of counts. It exits 1 when anything failed or nothing ran.
//
// With a command as its arguments (`testsum go test -json`), failed tests, if they are few, run once more with it after
// the stream has ended, when the machine is idle. Those that pass then are named with their output: a test that needs
// an idle machine has to be fixed, but it must not hide another failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
	Time                                      time.Time
}

// tally is the content of the stream up to now.
type tally struct {
	passed, failed, count int
	// skipped are the tests by the reason.
	skipped map[string][]string
	// output has the output of tests that have not ended, said that of tests that failed: a test may run again, with
	// the race detector, and pass.
	output   map[string][]string
	said     map[string]string
	failures []string
	// unsteady are the failures that passed when they ran again.
	unsteady []string
	// began is the time at which the first test of a package began: before, the package was built or waited for its
	// turn.
	began map[string]time.Time
}

func newTally() tally {
	return tally{output: map[string][]string{}, said: map[string]string{}, skipped: map[string][]string{}, began: map[string]time.Time{}}
}

func main() {
	t := newTally()
	if err := t.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	if len(os.Args) > 1 {
		t.again(os.Stdout, func(pkg, pattern string) ([]byte, error) {
			cmd := exec.Command(os.Args[1], append(os.Args[2:len(os.Args):len(os.Args)], "-run", pattern, pkg)...)
			cmd.Stderr = os.Stderr
			return cmd.Output()
		})
	}
	t.close(os.Stdout)
	if t.failed > 0 || t.passed == 0 {
		os.Exit(1)
	}
}

func (t *tally) read(r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text()) // a build error, or a tool's own words
			continue
		}
		t.add(e, w)
	}
	return lines.Err()
}

func (t *tally) add(e event, w io.Writer) {
	if e.Package == "" {
		e.Package = e.ImportPath // build events name the package so
	}
	key := e.Package + " " + e.Test
	if began, ok := t.began[e.Package]; ok && e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
		e.Elapsed = e.Time.Sub(began).Seconds()
		delete(t.began, e.Package) // it may run again
	}
	switch e.Action {
	case "run":
		if _, ok := t.began[e.Package]; !ok {
			t.began[e.Package] = e.Time
		}
	case "output", "build-output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-fail":
		t.fail(key)
	case "pass":
		if e.Test == "" {
			fmt.Fprintf(w, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
		} else {
			t.passed++
		}
		delete(t.output, key)
	case "skip":
		if e.Test != "" {
			why := e.Package + ": " + reason(t.output[key])
			t.skipped[why] = append(t.skipped[why], e.Test)
			t.count++
		}
		delete(t.output, key)
	case "fail":
		if e.Test == "" {
			fmt.Fprintf(w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
		}
		if !slices.Contains(t.failures, key) {
			t.fail(key)
		}
	}
}

func (t *tally) fail(key string) {
	// A package fails because a test in it failed. It counts as a failure itself only if no test did (a build error, a
	// panic).
	pkg, test, _ := strings.Cut(key, " ")
	if test == "" && slices.ContainsFunc(t.failures, func(f string) bool { return strings.HasPrefix(f, pkg+" ") }) {
		return
	}
	t.failed++
	t.failures = append(t.failures, key)
	t.said[key] = tail(strings.Join(t.output[key], ""))
}

// few is the largest number of failed tests that run again: more of them are not caused by a busy machine.
const few = 8

// again runs the failed tests once more. It runs nothing if one failure cannot come from a busy machine: a package that
// did not build or ended in a panic, or a race.
func (t *tally) again(w io.Writer, run func(pkg, pattern string) ([]byte, error)) {
	failed := map[string][]string{}
	for _, key := range t.failures {
		pkg, test, _ := strings.Cut(key, " ")
		if test == "" || strings.Contains(t.said[key], "race detected") || strings.Contains(t.said[key], "\npanic: ") {
			return
		}
		test, _, _ = strings.Cut(test, "/")
		if !slices.Contains(failed[pkg], test) {
			failed[pkg] = append(failed[pkg], test)
		}
	}
	if len(slices.Concat(slices.Collect(maps.Values(failed))...)) > few {
		return
	}
	for _, pkg := range slices.Sorted(maps.Keys(failed)) {
		for _, test := range failed[pkg] {
			fmt.Fprintf(w, "again %s %s\n", pkg, test)
			out, err := run(pkg, "^"+regexp.QuoteMeta(test)+"$")
			second := newTally()
			if second.read(strings.NewReader(string(out)), io.Discard) != nil || err != nil || second.failed > 0 || second.passed == 0 {
				continue
			}
			t.failures = slices.DeleteFunc(t.failures, func(key string) bool {
				unsteady := key == pkg+" "+test || strings.HasPrefix(key, pkg+" "+test+"/")
				if unsteady {
					t.unsteady = append(t.unsteady, key)
				}
				return unsteady
			})
		}
	}
	t.failed = len(t.failures)
	t.passed += len(t.unsteady)
}

func (t *tally) close(w io.Writer) {
	if len(t.skipped) > 0 {
		fmt.Fprintf(w, "\nskipped:\n")
		for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
			tests := t.skipped[why]
			fmt.Fprintf(w, "  %s\n    %d: %s\n", why, len(tests), strings.Join(tests, ", "))
		}
	}
	for _, key := range t.unsteady {
		fmt.Fprintf(w, "\n--- failed, and passed when it ran again by itself: %s\n%s", key, t.said[key])
	}
	// Failures come last, where a reader who starts at the end of a log finds them.
	for _, key := range t.failures {
		fmt.Fprintf(w, "\n--- FAIL: %s\n%s", key, t.said[key])
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.count)
	for _, key := range t.failures {
		fmt.Fprintln(w, "failed: "+key)
	}
}

// most is the largest shown part of the output of one failed test, in bytes.
const most = 16 << 10

// tail returns the end of a test's output, at most most bytes.
func tail(s string) string {
	if len(s) <= most {
		return s
	}
	_, s, _ = strings.Cut(s[len(s)-most:], "\n")
	return "(what it printed before is left out)\n" + s
}

// reason returns the last line that the test printed before the runner's own.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- SKIP") && !strings.HasPrefix(line, "=== ") {
			return line
		}
	}
	return "no reason given"
}
