// Package imagetest compiles small programs for tests: some that package image accepts as cnibench, some that it refuses.
package imagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// module is the import path of cnibench.
const module = "github.com/cnibench/cnibench"

// Program describes a test program.
type Program struct{ Module, OS, Arch, Version string }

// Cnibench describes a program that package image accepts as cnibench for Linux.
func Cnibench(arch, version string) Program { return Program{module, "linux", arch, version} }

var (
	mu    sync.Mutex
	built = map[Program][]byte{}
)

// File compiles the program, once per process, and returns its path in a temporary directory of the test.
func (p Program) File(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "program")
	if err := os.WriteFile(file, p.compileOnce(t), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func (p Program) compileOnce(t testing.TB) []byte {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if content, ok := built[p]; ok {
		return content
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module " + p.Module + "\n\ngo 1.26\n",
		"main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+p.Version, "-o", file, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+p.OS, "GOARCH="+p.Arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	built[p] = content
	return content
}
