// Command release makes the parts of a release that goreleaser does not build: man pages, completions, the image of the
// agents for every architecture, and the Helm chart. All have the version of goreleaser, so that names agree.
//
//	go run ./internal/tool/release -version 0.1.0 -date 2026-11-24T08:00:00Z -o bin/release
//
// goreleaser calls it before it builds (.goreleaser.yaml). The binaries in the image are built with the flags that
// goreleaser uses, so they are the same as those in the archives.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/cnibench/cnibench/internal/cli"
	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/env/kube/deploy"
)

// linkerFlags are the flags of a release, with its version.
const linkerFlags = "-s -w -X github.com/cnibench/cnibench/internal/cli.version="

// architectures are the architectures of the image.
var architectures = []string{"amd64", "arm64"}

func main() {
	var r release
	date := flag.String("date", "", "`time` of the release's commit, RFC 3339")
	flag.StringVar(&r.version, "version", "", "`version` of the release, without v")
	flag.StringVar(&r.to, "o", "bin/release", "`directory` to write")
	flag.Parse()
	var err error
	if r.date, err = time.Parse(time.RFC3339, *date); err == nil {
		// goreleaser has no commit in a clone without a remote; times in archives begin in 1970.
		r.date = time.Unix(max(0, r.date.Unix()), 0).UTC()
		err = r.make()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one release: its version, the time of its commit, and the directory of its parts.
type release struct {
	version, to string
	date        time.Time
}

func (r release) make() error {
	if r.version == "" {
		return errors.New("-version is missing")
	}
	if err := os.RemoveAll(r.to); err != nil {
		return err
	}
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(r.to, dir), 0o755); err != nil {
			return err
		}
	}
	for _, part := range []func() error{r.manuals, r.completions, r.chart, r.image} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// manuals writes a man page for each command.
func (r release) manuals() error {
	root := cli.Tree()
	root.DisableAutoGenTag = true
	head := doc.GenManHeader{Section: "1", Source: "cnibench " + r.version, Manual: "cnibench", Date: &r.date}
	return doc.GenManTree(root, &head, filepath.Join(r.to, "man"))
}

// completions writes the completion files of the shells under the names that packages use.
func (r release) completions() error {
	for name, write := range map[string]func(*cobra.Command, io.Writer) error{
		"cnibench.bash": func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"cnibench.zsh":  (*cobra.Command).GenZshCompletion,
		"cnibench.fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
	} {
		err := create(filepath.Join(r.to, "completions", name), func(w io.Writer) error { return write(cli.Tree(), w) })
		if err != nil {
			return err
		}
	}
	return nil
}

// repository returns the line of the chart's values with the image's repository.
func repository(of string) string { return "\n  repository: " + of + "\n" }

// chart writes the Helm chart as helm package would, and the same as a manifest for kubectl. Both name this release's
// image.
func (r release) chart() error {
	const from = "deploy/" + deploy.Chart
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	name := image.DefaultName(r.version).String()
	repo, tag := name[:strings.LastIndex(name, ":")], name[strings.LastIndex(name, ":")+1:]
	err = errors.Join(
		replace(filepath.Join(dir, "Chart.yaml"), "\nversion: 0.1.0\n", "\nversion: "+r.version+"\n"),
		replace(filepath.Join(dir, "Chart.yaml"), "\nappVersion: 0.1.0\n", "\nappVersion: "+tag+"\n"),
		replace(filepath.Join(dir, "values.yaml"), repository(image.Repository), repository(repo)),
	)
	if err != nil {
		return err
	}
	manifest, _, err := deploy.Render(dir, chart.Release{Name: "cnibench", Namespace: "cnibench", Service: "kubectl"}, nil)
	if err != nil {
		return err
	}
	if !strings.Contains(manifest, "image: "+name+"\n") {
		return fmt.Errorf("the chart does not run the image %s", name)
	}
	return create(filepath.Join(r.to, "cnibench-chart-"+r.version+".tgz"), func(w io.Writer) error { return r.archive(w, dir) })
}

// archive writes the files of dir as a chart archive: below a directory of the chart's name, with the time of the
// release.
func (r release) archive(w io.Writer, dir string) error {
	zipped := gzip.NewWriter(w)
	files := tar.NewWriter(zipped)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		head := &tar.Header{Name: path.Join("cnibench", name), Mode: 0o644, Size: int64(len(content)), ModTime: r.date}
		if err := files.WriteHeader(head); err != nil {
			return err
		}
		_, err = files.Write(content)
		return err
	})
	return errors.Join(err, files.Close(), zipped.Close())
}

// image writes the image of the agents, for every architecture, as an OCI archive.
func (r release) image() error {
	spec := image.Spec{Name: image.DefaultName(r.version), Version: r.version}
	for _, arch := range architectures {
		file := filepath.Join(r.to, "cnibench-linux-"+arch)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", linkerFlags+r.version, "-o", file, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build for linux/%s: %w", arch, err)
		}
		binary, err := image.ParseBinary("linux/" + arch + "=" + file)
		if err != nil {
			return err
		}
		spec.Binaries = append(spec.Binaries, binary)
	}
	made, err := image.Build(spec)
	if err != nil {
		return err
	}
	return create(filepath.Join(r.to, "cnibench_"+r.version+"_image.tar"), made.WriteOCI)
}

// replace replaces text by other. It fails unless the file has text exactly once.
func replace(file, text, other string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(content), text); n != 1 {
		return fmt.Errorf("%s has %q %d times, want once", file, strings.TrimSpace(text), n)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(content), text, other, 1)), 0o644)
}

func create(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
