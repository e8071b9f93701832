package main

import (
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

func TestABrokenBuildFails(t *testing.T) {
	got, out := run(
		`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: undefined: y\n"}`,
		`{"ImportPath":"p","Action":"build-fail"}`,
		`{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}`)
	if got.failed == 0 || !strings.Contains(out, "undefined: y") {
		t.Errorf("tally %+v, output:\n%s", got, out)
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

// once is a first run with a test that fails, and what its package's binary prints at its end.
func once(last string) []string {
	return []string{
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestA/x","Output":"    got 1, want 2\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA/x"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"` + last + `\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.004s\n"}`,
		`{"Action":"fail","Package":"p"}`,
	}
}

func TestWhatASecondRunMayDecide(t *testing.T) {
	six := once("FAIL")
	for _, x := range []string{"C", "D", "E", "F", "G"} {
		six = append([]string{`{"Action":"fail","Package":"p","Test":"Test` + x + `"}`}, six...)
	}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a test":         {once("FAIL"), "p ^(TestA)$\n"},
		"of two":         {append(once("FAIL"), `{"Action":"fail","Package":"o","Test":"TestO"}`), "o ^(TestO)$\np ^(TestA)$\n"},
		"a panic":        {once("panic: oh"), ""},
		"a broken build": {append(once("FAIL"), `{"ImportPath":"o","Action":"build-fail"}`, `{"Action":"fail","Package":"o"}`), ""},
		"too many":       {six, ""},
		"nothing":        {[]string{`{"Action":"pass","Package":"p","Test":"TestB"}`}, ""},
	} {
		got, _ := run(c.lines...)
		var out strings.Builder
		got.doubtful(&out)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", name, out.String(), c.want)
		}
	}
}

func TestASecondRun(t *testing.T) {
	again, onward := `{"Action":"again"}`, `{"Action":"onward"}`
	passes := []string{again, `{"Action":"pass","Package":"p","Test":"TestA/x"}`, `{"Action":"pass","Package":"p","Test":"TestA/y"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p"}`, onward}
	races := []string{`{"Action":"pass","Package":"p","Test":"TestA/x"}`, `{"Action":"pass","Package":"p"}`}
	got, out := run(append(append(once("FAIL"), passes...), races...)...)
	if got.failed != 0 || got.passed != 4 || !strings.Contains(out, "got 1, want 2") ||
		!strings.HasSuffix(out, "\n4 passed, 0 failed, 0 skipped\npassed in its second run only, mend it: p TestA/x\npassed in its second run only, mend it: p TestA\n") {
		t.Errorf("it passes: %+v, output:\n%s", got, out)
	}

	fails := append([]string{again}, once("FAIL")[1:]...)
	got, out = run(append(append(once("FAIL"), fails...), onward)...)
	if got.failed != 2 || got.passed != 1 || len(got.unsteady) > 0 || strings.Count(out, "failed: p TestA\n") != 1 {
		t.Errorf("it fails again: %+v, output:\n%s", got, out)
	}

	// What the race detector found is not undone by a run in which it found nothing.
	got, _ = run(append(append(passes, once("FAIL")...), `{"Action":"pass","Package":"p","Test":"TestA"}`)...)
	if got.failed != 2 {
		t.Errorf("after a second run: %+v", got)
	}

	// A test whose second run was cut off has failed.
	if got, _ = run(append(once("FAIL"), again, `{"Action":"fail","Package":"p"}`, onward)...); got.failed != 2 {
		t.Errorf("it did not run again: %+v", got)
	}
}
