package cli

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/cnibench/cnibench/internal/env/image/imagetest"
)

// command runs a command line in this process.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, openLab: raisePretence}
	code = p.main(args)
	return code, out.String(), errs.String()
}

// platformArgs are --platform flags for small programs of this version.
func platformArgs(t *testing.T, architectures ...string) []string {
	t.Helper()
	var args []string
	for _, arch := range architectures {
		args = append(args, "--platform", "linux/"+arch+"="+imagetest.Cnibench(arch, buildVersion()).File(t))
	}
	return args
}

func TestImageWritesAnArchive(t *testing.T) {
	t.Chdir(t.TempDir())
	args := append([]string{"image"}, platformArgs(t, "amd64")...)
	code, stdout, stderr := command(args...)
	if code != exitFine || !strings.HasPrefix(stdout, "cnibench.local/cnibench:") || !strings.Contains(stdout, "@sha256:") || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if !strings.Contains(stderr, DefaultImage) {
		t.Errorf("stderr %q does not name the file", stderr)
	}
	first := stdout
	content, err := os.ReadFile(DefaultImage)
	if err != nil {
		t.Fatal(err)
	}
	// Again, to stdout: the reference goes to stderr, and the bytes are the same.
	code, stdout, stderr = command(append(args, "-o", "-")...)
	if code != exitFine || stdout != string(content) || !strings.Contains(stderr, strings.TrimSpace(first)) {
		t.Errorf("exit %d, %d bytes of %d, stderr %q", code, len(stdout), len(content), stderr)
	}
	code, stdout, stderr = command(append(args, "-o", "d.tar", "--name", "registry.example/x/y:z")...)
	if code != exitFine || !strings.HasPrefix(stdout, "registry.example/x/y:z@sha256:") {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if names, err := filepath.Glob("*"); err != nil || strings.Join(names, " ") != "cnibench-image.tar d.tar" {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestImageIsPushed(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	t.Chdir(t.TempDir())
	to := strings.TrimPrefix(s.URL, "http://") + "/team/cnibench"
	code, stdout, stderr := command(append([]string{"image", "--push", to + ":v1"}, platformArgs(t, "amd64", "arm64")...)...)
	if code != exitFine || !strings.HasPrefix(stdout, to+":v1@sha256:") || !strings.Contains(stderr, "is pushed") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if names, err := filepath.Glob("*"); err != nil || len(names) > 0 {
		t.Errorf("an archive was written that nobody asked for: %v, %v", names, err)
	}
	s.Close()
	if code, _, stderr := command(append([]string{"image", "--push", to}, platformArgs(t, "amd64")...)...); code != exitFailed || !strings.Contains(stderr, "hint: ") {
		t.Errorf("no registry: exit %d, stderr %q", code, stderr)
	}
}

func TestImageIsLoaded(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("ctr", []byte("#!/bin/sh\ncase \"$4\" in import) cat > \"$0.got\";; esac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"image", "--load", "ctr:mine"}, platformArgs(t, "amd64")...)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	code, stdout, stderr := command(args...)
	if code != exitFine || !strings.Contains(stdout, "@sha256:") || !strings.Contains(stderr, "is in containerd's namespace mine") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if info, err := os.Stat("ctr.got"); err != nil || info.Size() < 1000 {
		t.Errorf("ctr got %v, %v", info, err)
	}
}

// TestImageBadInput wants exit code 2, all faults of the flags at once, and no file.
func TestImageBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	good := platformArgs(t, "amd64")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"several": {
			[]string{"--name", "A B", "--platform", "linux/vax=x", "--load", "podman", "--push", "x:latest", "--insecure"},
			[]string{`"A B"`, `"linux/vax"`, `"podman"`, `"x:latest"`},
		},
		"nothing to push":     {append(good, "--insecure"), []string{"--insecure is for --push"}},
		"no such file":        {[]string{"--platform", "linux/amd64=none"}, []string{"none", "no such file"}},
		"another program":     {[]string{"--platform", "linux/amd64=" + imagetest.Program{Module: "example.org/x", OS: "linux", Arch: "amd64"}.File(t)}, []string{"is not cnibench"}},
		"another platform":    {[]string{"--platform", strings.Replace(good[1], "amd64", "arm64", 1)}, []string{"is built for linux/amd64"}},
		"words":               {[]string{"now"}, []string{"now"}},
		"this is no cnibench": {nil, []string{"is not cnibench"}}, // but a test of it
	} {
		code, stdout, stderr := command(append([]string{"image"}, c.args...)...)
		if code != exitUsage || stdout != "" {
			t.Errorf("%s: exit %d, stdout %q", name, code, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, stderr)
			}
		}
	}
	if names, err := filepath.Glob("*"); err != nil || len(names) > 0 {
		t.Errorf("files %v, %v", names, err)
	}
	if code, _, stderr := command(append([]string{"image", "-o", "none/x.tar"}, good...)...); code != exitUsage || !strings.Contains(stderr, "none/x.tar") {
		t.Errorf("a directory that is not there: exit %d, %s", code, stderr)
	}
}
