package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{
		"kind":        {Kind, "kind"},
		"kind:test":   {Kind, "test"},
		"ctr":         {Ctr, "k8s.io"},
		"ctr:default": {Ctr, "default"},
		"docker":      {Docker, ""},
	} {
		if got, err := ParseTarget(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "podman", "kind:", "kind=x", "ctr=x", "docker:x", "containerd-socket", ":", "=x"} {
		got, err := ParseTarget(text)
		if err == nil || !strings.Contains(advice.Of(err), "ctr[:NAMESPACE]") {
			t.Errorf("%q: %+v, %v, hint %q", text, got, err, advice.Of(err))
		}
	}
}

// fake puts a shell script in the place of a program and returns the directory where it may leave files, as $OUT.
func fake(t *testing.T, name, script string) (out string) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, name)
	write(t, file, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("OUT", out)
	return out
}

func TestLoadCtr(t *testing.T) {
	i := mustBuild(t, "amd64", "arm64")
	out := fake(t, "ctr", `printf '%s\n' "$*" >> "$OUT/args"; case "$4" in import) cat > "$OUT/archive";; esac`)
	if err := i.LoadCtr(t.Context(), "some.ns"); err != nil {
		t.Fatal(err)
	}
	tagged, digested := i.Digested()
	want := "-n some.ns images import -\n-n some.ns images tag --force " + tagged + " " + digested + "\n"
	if got := read(t, filepath.Join(out, "args")); got != want {
		t.Errorf("ctr was called with\n%s, want\n%s", got, want)
	}
	index, err := layout.ImageIndexFromPath(unpack(t, []byte(read(t, filepath.Join(out, "archive")))))
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || m.Manifests[0].Digest.String() != i.Digest() {
		t.Errorf("ctr got %+v, %v", m, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLoadDockerChoosesItsPlatform: of several platforms, the daemon gets its own.
func TestLoadDockerChoosesItsPlatform(t *testing.T) {
	i := mustBuild(t, "amd64", "arm64")
	out := fake(t, "docker", `case "$1" in version) echo linux/arm64;; load) cat > "$OUT/archive";; esac`)
	if err := i.LoadDocker(t.Context()); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(filepath.Join(out, "archive"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Architecture != "arm64" {
		t.Errorf("docker got %+v, %v", config, err)
	}
	fake(t, "docker", `echo linux/s390x`)
	if err := i.LoadDocker(t.Context()); err == nil || !strings.Contains(err.Error(), "not for linux/s390x") || !strings.Contains(advice.Of(err), "--platform") {
		t.Errorf("a daemon of another platform: %v", err)
	}
	fake(t, "docker", `echo nobody is there >&2; exit 1`)
	if err := i.LoadDocker(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody is there") {
		t.Errorf("no daemon: %v", err)
	}
}

func TestProgramsFail(t *testing.T) {
	i := mustBuild(t, "amd64")
	for name, c := range map[string]struct{ script, want string }{
		"its words":         {`cat > /dev/null; echo "permission   denied" >&2; exit 1`, "ctr -n x images import -: exit status 1: permission denied"},
		"without reading":   {`echo "no daemon"; exit 3`, "exit status 3: no daemon"},
		"content with less": {`exit 0`, "took only a part"},
		"escape sequences":  {`cat > /dev/null; printf '\033[2J'; exit 1`, "exit status 1"},
	} {
		fake(t, "ctr", c.script)
		err := i.LoadCtr(t.Context(), "x")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	for _, err := range []error{i.LoadCtr(t.Context(), "x"), i.LoadDocker(t.Context())} {
		if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(advice.Of(err), "-o") {
			t.Errorf("no such program: %v, hint %q", err, advice.Of(err))
		}
	}
}

func TestLoadIsInterrupted(t *testing.T) {
	reason := errors.New("enough")
	out := fake(t, "ctr", `: > "$OUT/started"; exec sleep 60`)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for !fileExists(filepath.Join(out, "started")) {
			runtime.Gosched()
		}
		cancel(reason)
	}()
	if err := mustBuild(t, "amd64").LoadCtr(ctx, "x"); !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
}
