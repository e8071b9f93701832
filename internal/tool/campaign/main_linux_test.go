package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResults: a file that is there is not measured again, and one that failed does not stay.
func TestResults(t *testing.T) {
	in, failed, calls := setting{dir: t.TempDir()}, errors.New("failed"), 0
	for _, want := range []error{failed, nil, nil} {
		file, err := in.results("a/b", func(file string) error {
			calls++
			return errors.Join(want, os.WriteFile(file, nil, 0o600))
		})
		if _, missing := os.Stat(filepath.Join(in.dir, "a", "b.jsonl")); !errors.Is(err, want) || (missing == nil) != (want == nil) || (file == "") != (want != nil) {
			t.Errorf("%q, %v, want %v; %v", file, err, want, missing)
		}
	}
	if calls != 2 {
		t.Errorf("measured %d times", calls)
	}
}

// TestChoose: a flag names some of all; without it they are all.
func TestChoose(t *testing.T) {
	for text, want := range map[string]int{"": len(neighbours), "-beside=bursts,nothing": 2, "-beside=unknown": -1} {
		f, some := flag.NewFlagSet("", flag.ContinueOnError), []neighbour(nil)
		f.SetOutput(io.Discard)
		choose(f, &some, "beside", "", neighbours)
		if err := f.Parse(strings.Fields(text)); (err != nil) != (want < 0) || err == nil && len(some) != want {
			t.Errorf("%q: %d, %v", text, len(some), err)
		}
	}
}

// TestOutput: what a command prints comes back, and its last words are in the error.
func TestOutput(t *testing.T) {
	out, err := output(t.Context(), "sh", "-c", "echo seen; echo why >&2; exit 3")
	if out != "seen\n" || err == nil || !strings.HasSuffix(err.Error(), "exit status 3: why\n") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestPublish(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const begin, end = "<!-- truth: written by make truth -->\n", "<!-- end of truth -->\n"
	if err := os.WriteFile(file, []byte("a\n"+begin+"old\n"+end+"b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (setting{document: file, program: "echo"}).publish("truth", "new\n"); err != nil {
		t.Fatal(err)
	}
	const want = "\nnew\n\nWritten by `version`.\n\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != "a\n"+begin+want+end+"b\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, got, _, err := parts(file, "truth"); got != want || err != nil {
		t.Errorf("read back: %q %v", got, err)
	}
	if err := (setting{document: file, program: "echo"}).publish("aa", "new\n"); err == nil {
		t.Error("a document without the comments was accepted")
	}
	if err := (setting{document: file, program: "false"}).publish("truth", "new\n"); err == nil {
		t.Error("a program without a version was accepted")
	}
}
