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
