package bpftest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compiler made the committed objects. Another one gives other instructions for the same source, which is no fault.
const compiler = "clang version 14.0.6"

// TestObjectsMatchTheirSources compiles every program again and compares the object byte by byte with the committed
// one, so that nobody measures a program that the source does not show.
func TestObjectsMatchTheirSources(t *testing.T) {
	out, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Skipf("no clang: %v", err)
	}
	if !strings.Contains(string(out), compiler) {
		first, _, _ := strings.Cut(string(out), "\n")
		t.Skipf("the objects were made by %s, and here is %s", compiler, first)
	}
	if _, err := exec.LookPath("llvm-strip"); err != nil {
		t.Skipf("no llvm-strip: %v", err)
	}
	sources, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, name := range sources {
		for _, args := range directives(t, name) {
			commands++
			compile(t, filepath.Dir(name), args)
		}
	}
	if commands == 0 {
		t.Error("no directive was found")
	}
}

// directives returns the arguments of every bpf2go that go generate would run for a file.
func directives(t *testing.T, name string) [][]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "//go:generate go run github.com/cilium/ebpf/cmd/bpf2go "); ok {
			found = append(found, strings.Fields(rest))
		}
	}
	return found
}

func compile(t *testing.T, dir string, args []string) {
	t.Helper()
	fresh := t.TempDir()
	cmd := exec.Command("go", slices.Concat([]string{"run", "github.com/cilium/ebpf/cmd/bpf2go", "-output-dir", fresh, "-go-package", filepath.Base(dir)}, args)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", dir, strings.Join(args, " "), err, out)
	}
	made, err := filepath.Glob(filepath.Join(fresh, "*"))
	if err != nil || len(made) == 0 {
		t.Fatalf("%s: nothing was made: %v", dir, err)
	}
	for _, name := range made {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		committed := filepath.Join(dir, filepath.Base(name))
		want, err := os.ReadFile(committed)
		if err != nil {
			t.Errorf("%s is not there: run go generate ./internal/kernel/bpf/...", committed)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what its source gives: run go generate ./internal/kernel/bpf/...", committed)
		}
	}
}
