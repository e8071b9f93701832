package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/env/image/imagetest"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// packedTools builds an image of this machine's platform with programs.
func packedTools(t *testing.T, tools, files []string) (*Image, error) {
	t.Helper()
	b, err := ParseBinary("linux/" + runtime.GOARCH + "=" + imagetest.Cnibench(runtime.GOARCH, testVersion).File(t))
	if err != nil {
		t.Fatal(err)
	}
	return Build(Spec{Name: ToolsName(testVersion, tools), Version: testVersion, Binaries: []Binary{b}, Tools: tools, Programs: files})
}

// root writes the layer of an image into a directory.
func root(t *testing.T, i *Image) string {
	t.Helper()
	layers, err := i.single[0].image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			b, _ := io.ReadAll(r)
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, os.FileMode(h.Mode)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestProgramsRun: each tool of this machine starts in a root that has the image and nothing else.
func TestProgramsRun(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("chroot needs Linux and root")
	}
	ran := 0
	for _, tt := range []struct {
		name, says string
		args       []string
	}{
		{"iperf3", "iperf 3", []string{"--version"}},
		{"wrk", "wrk ", []string{"-v"}},
		{"hey", "Usage: hey", nil},
		{"ping", "ping from iputils", []string{"-V"}},
		{"netperf", "Netperf version", []string{"-V"}},
		{"netserver", "Netperf version", []string{"-V"}},
	} {
		file, err := exec.LookPath(tt.name)
		if err != nil {
			t.Logf("%s is not installed", tt.name)
			continue
		}
		ran++
		i, err := packedTools(t, []string{tt.name}, []string{file})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		dir := root(t, i)
		out, _ := exec.CommandContext(t.Context(), "chroot", append([]string{dir, "/" + tt.name}, tt.args...)...).CombinedOutput() // wrk and hey end with 1
		if !strings.Contains(string(out), tt.says) {
			t.Errorf("%s in its image: %s", tt.name, out)
		}
		config, err := i.single[0].image.ConfigFile()
		if err != nil || config.Config.Labels[labelTools] != tt.name {
			t.Errorf("%s: labels %v, %v", tt.name, config.Config.Labels, err)
		}
		again, err := packedTools(t, []string{tt.name}, []string{file})
		if err != nil || again.Digest() != i.Digest() {
			t.Errorf("%s: the same programs have two digests, %v", tt.name, err)
		}
	}
	if ran == 0 {
		t.Skip("no tool is installed: iperf3, wrk, hey, ping, netperf")
	}
}

// TestProgramsRefused: what would not start in the image is refused, all at once.
func TestProgramsRefused(t *testing.T) {
	dir := t.TempDir()
	script, foreign := filepath.Join(dir, "script"), imagetest.Cnibench("riscv64", testVersion).File(t)
	write(t, script, "#!/bin/sh\n")
	_, err := packedTools(t, []string{"x"}, []string{script, filepath.Join(dir, "none"), foreign})
	for _, want := range []string{"script is not a program that an image can hold", "none: no such file", "is for EM_RISCV, and the image is for"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := Spec{Name: ToolsName(testVersion, []string{"x"}), Version: testVersion, Binaries: []Binary{binary(t, "amd64"), binary(t, "arm64")}, Programs: []string{"/bin/ls"}}
	if _, err := Build(s); err == nil || !strings.Contains(err.Error(), "one platform") || advice.Of(err) == "" {
		t.Errorf("two platforms: %v", err)
	}
}
