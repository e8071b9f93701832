// Command testsum reads the output of `go test -json` and closes it with what a reader needs: the output of what
// failed, every skipped test with its reason, and one line of counts. It exits 1 when anything failed or nothing ran.
//
// With -failed it prints a line for each package with tests that a second run may decide on, its name and the pattern of
// the tests, and nothing where more is wrong than that. A line {"Action":"again"} in its input begins such a second run,
// {"Action":"onward"} ends it: a test that failed and passes there is counted as passed, and named as a test to mend.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// tally is what the stream said so far.
type tally struct {
	passed, failed, count int
	// skipped are the tests by the reason.
	skipped  map[string][]string
	output   map[string][]string
	failures []string
	// again is true within a second run; unsteady are the tests that passed only there.
	again    bool
	unsteady []string
	// broke are the packages whose tests did not all come to an end.
	broke map[string]bool
}

func newTally() tally {
	return tally{output: map[string][]string{}, skipped: map[string][]string{}, broke: map[string]bool{}}
}

func main() {
	failed := flag.Bool("failed", false, "print what a second run may decide on")
	flag.Parse()
	t := newTally()
	words := io.Writer(os.Stdout)
	if *failed {
		words = io.Discard
	}
	if err := t.read(os.Stdin, words); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	if *failed {
		t.doubtful(os.Stdout)
		return
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
	switch e.Action {
	case "again", "onward":
		t.again = e.Action == "again"
	case "output", "build-output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-fail":
		t.fail(key)
	case "pass":
		switch i := slices.Index(t.failures, key); {
		case e.Test == "":
			fmt.Fprintf(w, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
		case !t.again:
			t.passed++
		case i >= 0:
			t.passed++
			t.failed--
			t.failures = slices.Delete(t.failures, i, i+1)
			t.unsteady = append(t.unsteady, key)
		}
		if !slices.Contains(t.unsteady, key) { // what such a one said when it failed is still to be read
			delete(t.output, key)
		}
	case "skip":
		if e.Test != "" && !t.again {
			why := e.Package + ": " + reason(t.output[key])
			t.skipped[why] = append(t.skipped[why], e.Test)
			t.count++
		}
		delete(t.output, key)
	case "fail":
		if e.Test == "" {
			fmt.Fprintf(w, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
			// The test's binary says so itself when it has run all of them: one that panicked, or was out of time, has not.
			t.broke[e.Package] = !slices.Contains(t.output[key], "FAIL\n")
		}
		if !slices.Contains(t.failures, key) {
			t.fail(key)
		}
	}
}

// few is how many tests a second run may decide on at most: beyond that it is not the moment that was bad.
const few = 5

// doubtful writes what a second run may decide on: the tests that failed, if they are few, by package, and if the run came
// to its end.
func (t *tally) doubtful(w io.Writer) {
	names := map[string][]string{}
	count := 0
	for _, key := range t.failures {
		pkg, test, _ := strings.Cut(key, " ")
		if test == "" || t.broke[pkg] {
			return
		}
		test, _, _ = strings.Cut(test, "/")
		if !slices.Contains(names[pkg], test) {
			names[pkg] = append(names[pkg], test)
			count++
		}
	}
	if count > few {
		return
	}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(w, "%s ^(%s)$\n", pkg, strings.Join(names[pkg], "|"))
	}
}

func (t *tally) fail(key string) {
	// A package fails because a test in it failed; it counts by itself only when no test did (a build error, a panic).
	pkg, test, _ := strings.Cut(key, " ")
	if test == "" && slices.ContainsFunc(t.failures, func(f string) bool { return strings.HasPrefix(f, pkg+" ") }) {
		return
	}
	t.failed++
	t.failures = append(t.failures, key)
}

func (t *tally) close(w io.Writer) {
	if len(t.skipped) > 0 {
		fmt.Fprintf(w, "\nskipped:\n")
		for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
			tests := t.skipped[why]
			fmt.Fprintf(w, "  %s\n    %d: %s\n", why, len(tests), strings.Join(tests, ", "))
		}
	}
	// Failures stand last, where a reader of the end of a log finds them.
	for _, key := range append(slices.Clone(t.unsteady), t.failures...) {
		fmt.Fprintf(w, "\n--- FAIL: %s\n%s", key, tail(strings.Join(t.output[key], "")))
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.count)
	for _, key := range t.unsteady {
		fmt.Fprintln(w, "passed in its second run only, mend it: "+key)
	}
	for _, key := range t.failures {
		fmt.Fprintln(w, "failed: "+key)
	}
}

// most is how much of the output of one failed test is shown, in bytes.
const most = 16 << 10

// tail is the end of what a test printed.
func tail(s string) string {
	if len(s) <= most {
		return s
	}
	_, s, _ = strings.Cut(s[len(s)-most:], "\n")
	return "(what it printed before is left out)\n" + s
}

// reason is the last line that the test printed before the runner's own.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- SKIP") && !strings.HasPrefix(line, "=== ") {
			return line
		}
	}
	return "no reason given"
}
