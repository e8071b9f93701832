package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unpacked returns the files of a chart archive by name.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = string(content)
	}
}

// The chart, its application and its image have one version; a snapshot's image is in no registry.
func TestChartNamesItsImage(t *testing.T) {
	t.Chdir("../../..")
	for version, repository := range map[string]string{"1.2.3": "ghcr.io/cnibench/cnibench", "1.2.3-rc.1": "ghcr.io/cnibench/cnibench", "1.2.4-SNAPSHOT-abc": "cnibench.local/cnibench"} {
		r := release{version: version, to: t.TempDir(), date: time.Unix(1_700_000_000, 0)}
		if err := r.chart(); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(r.to, "cnibench-chart-"+version+".tgz")
		files := unpacked(t, name)
		for file, want := range map[string]string{
			"cnibench/Chart.yaml": "\nversion: " + version + "\nappVersion: " + version + "\n", "cnibench/values.yaml": repository + "\n",
			"cnibench/templates/cronjob.yaml": "kind: CronJob",
		} {
			if !strings.Contains(files[file], want) {
				t.Errorf("%s: %s has no %q:\n%s", version, file, want, files[file])
			}
		}
		again := release{version: version, to: t.TempDir(), date: r.date}
		if err := again.chart(); err != nil {
			t.Fatal(err)
		}
		first, _ := os.ReadFile(name)
		second, _ := os.ReadFile(filepath.Join(again.to, "cnibench-chart-"+version+".tgz"))
		if !bytes.Equal(first, second) {
			t.Errorf("%s: two archives of one chart differ", version)
		}
	}
}

// Every command has a man page, and every shell a completion file that knows the commands.
func TestManualsAndCompletions(t *testing.T) {
	r := release{version: "1.2.3", to: t.TempDir(), date: time.Unix(1_700_000_000, 0)}
	for _, dir := range []string{"man", "completions"} {
		if err := os.Mkdir(filepath.Join(r.to, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.manuals(), r.completions()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"man/cnibench.1": "cnibench 1.2.3", "man/cnibench-run.1": "--profiles", "man/cnibench-cni-detect.1": "cnibench cni detect",
		"completions/cnibench.bash": "__start_cnibench", "completions/cnibench.zsh": "#compdef cnibench", "completions/cnibench.fish": "complete -c cnibench",
	} {
		text, err := os.ReadFile(filepath.Join(r.to, name))
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), want) {
			t.Errorf("%s: no %q (%v)", name, want, err)
		}
	}
}

// goreleaser links with the flags that the image's programs are linked with, or the two would differ.
func TestLinkerFlagsAgree(t *testing.T) {
	text, err := os.ReadFile("../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `ldflags: ["`+linkerFlags+`{{ .Version }}"]`); n != 2 {
		t.Errorf(".goreleaser.yaml has the linker's flags %d times, want 2", n)
	}
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil || !strings.Contains(string(makefile), linkerFlags+"$(VERSION)") {
		t.Errorf("Makefile links with other flags (%v)", err)
	}
}
