package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// cache has the directories of everything built, by versions, and the state of clusters.
type cache struct {
	// home is the directory of the whole cache, dir that of the current versions: it has links to what nodes and images
	// use from the components' own directories.
	home, dir string
}

func openCache() (cache, error) {
	home, err := os.UserCacheDir()
	if err != nil {
		return cache{}, advice.With(fmt.Errorf("no directory for the cache: %w", err), "set HOME or XDG_CACHE_HOME")
	}
	home = filepath.Join(home, "cnibench", "e2e")
	return cache{home: home, dir: filepath.Join(home, cacheKey(runtime.GOARCH))}, nil
}

func (c cache) bin(name string) string { return filepath.Join(c.dir, "bin", name) }
func (c cache) image(name string) string {
	return filepath.Join(c.dir, "images", fmt.Sprintf("%s-r%d.tar", name, imageRevision))
}

// kept returns the path of a file that a component keeps of its module.
func (c cache) kept(name, file string) string {
	i := slices.IndexFunc(components, func(comp component) bool { return comp.name == name })
	return filepath.Join(c.part(components[i]), file)
}

// part is the directory of one component.
func (c cache) part(comp component) string {
	return filepath.Join(c.home, "parts", comp.key(runtime.GOARCH))
}

// everything is the filter for a cluster with every part.
func everything(string) bool { return true }

// build makes the parts that the cache lacks for a cluster. has reports whether the cluster has a part. It writes the
// progress to w.
func (c cache) build(ctx context.Context, w io.Writer, has func(string) bool) error {
	if err := c.ready(has); err != nil {
		return err
	}
	for _, d := range []string{"bin", "images", "src"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o755); err != nil {
			return err
		}
	}
	for _, p := range debianPackages {
		if err := c.debian(ctx, w, p); err != nil {
			return fmt.Errorf("take %s from Debian: %w", p, err)
		}
	}
	for _, comp := range components {
		if !has(comp.only) {
			continue
		}
		if err := c.component(ctx, w, comp); err != nil {
			return fmt.Errorf("build %s %s: %w", comp.name, comp.version, err)
		}
	}
	for _, program := range []string{"pause", resolver} {
		if err := c.own(ctx, w, program); err != nil {
			return fmt.Errorf("build our own program %s: %w", program, err)
		}
	}
	return c.images(w, has)
}

// component builds one component, unless the cache has it, and links its results to where nodes use them.
func (c cache) component(ctx context.Context, w io.Writer, comp component) error {
	part := c.part(comp)
	if !holds(filepath.Join(part, "bin"), comp.programs()...) {
		began := time.Now()
		fmt.Fprintf(w, "building %s %s ...\n", comp.name, comp.version)
		if err := compile(ctx, part, comp); err != nil {
			return err
		}
		fmt.Fprintf(w, "built %s %s in %.0f s\n", comp.name, comp.version, time.Since(began).Seconds())
	}
	for _, p := range comp.programs() {
		if err := link(filepath.Join(part, "bin", p), c.bin(p)); err != nil {
			return err
		}
	}
	return nil
}

// link makes a second name for a file. An existing name is of the same component and remains.
func link(from, to string) error {
	if err := os.Link(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// compile builds a component into its directory. The programs come last, when everything else is complete.
func compile(ctx context.Context, part string, comp component) error {
	src := filepath.Join(part, "src")
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	out := filepath.Join(src, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(src, "go.mod"), []byte(comp.goMod()), 0o644); err != nil {
		return err
	}
	if comp.main != "" {
		if err := adoptMain(ctx, src, comp); err != nil {
			return err
		}
	}
	if err := comp.standIn.write(filepath.Join(src, standInDir)); err != nil {
		return err
	}
	for _, p := range comp.packages {
		name, pkg := program(p)
		flags := strings.TrimSpace("-s -w " + comp.ldflags)
		if _, err := goTool(ctx, src, "build", "-tags", comp.tags, "-ldflags", flags, "-o", filepath.Join(out, name), pkg); err != nil {
			return advice.With(err, "a version that the module proxy does not serve is replaced in internal/tool/cluster/versions.go")
		}
	}
	if err := keep(ctx, src, part, comp); err != nil {
		return err
	}
	return install(out, filepath.Join(part, "bin"), comp.programs()...)
}

// adoptMain writes the upstream main package as our own, without the omitted imports.
func adoptMain(ctx context.Context, src string, comp component) error {
	upstream, err := moduleDir(ctx, src, comp)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(upstream, comp.main))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(src, "main.go"), []byte(withoutImports(string(text), comp.without)), 0o644)
}

// write writes the stand-in as a module, if the component has one.
func (s standIn) write(dir string) error {
	if s.module == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+s.module+"\n\ngo 1.26.0\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "standin.go"), []byte(s.text), 0o644))
}

// keep copies the files that the component keeps from the upstream module.
func keep(ctx context.Context, src, part string, comp component) error {
	if len(comp.keep) == 0 {
		return nil
	}
	upstream, err := moduleDir(ctx, src, comp)
	if err != nil {
		return err
	}
	for _, f := range comp.keep {
		from, to := filepath.Join(upstream, f), filepath.Join(part, path.Base(f))
		if err := os.RemoveAll(to); err != nil { // of a build that was interrupted
			return err
		}
		if err := copyTree(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a file or a directory.
func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if err == nil && info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// moduleDir returns the directory of the upstream module in the module cache. It downloads the module if it is missing.
func moduleDir(ctx context.Context, src string, comp component) (string, error) {
	if _, err := goTool(ctx, src, "mod", "download", comp.module+"@v"+comp.version); err != nil {
		return "", err
	}
	dir, err := goTool(ctx, src, "list", "-m", "-f", "{{.Dir}}", comp.module)
	return strings.TrimSpace(dir), err
}

// ownPackages is the import path of our own programs of a cluster, valid anywhere in the module.
const ownPackages = "github.com/cnibench/cnibench/internal/tool/cluster/"

// own builds one of our programs for a new image, and if it is missing. Its source changes without a version.
func (c cache) own(ctx context.Context, w io.Writer, program string) error {
	if _, err := os.Stat(c.image(program)); err == nil && c.has(program) {
		return nil
	}
	fmt.Fprintf(w, "building %s ...\n", program)
	_, err := goTool(ctx, ".", "build", "-ldflags", "-s -w", "-o", c.bin(program), ownPackages+program)
	return advice.With(err, "run it in the directory of the module")
}

// debian downloads a package with apt-get and extracts its one program.
func (c cache) debian(ctx context.Context, w io.Writer, name string) error {
	program, _, _ := strings.Cut(name, "-")
	if c.has(program) {
		return nil
	}
	fmt.Fprintf(w, "fetching %s from Debian ...\n", name)
	src := filepath.Join(c.dir, "src", name)
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	if err := os.MkdirAll(src, 0o755); err != nil {
		return err
	}
	if _, err := run(ctx, src, nil, "apt-get", "download", name); err != nil {
		return advice.With(err, "needs apt-get and Debian's package lists: apt-get update")
	}
	debs, err := filepath.Glob(filepath.Join(src, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get left %d files, want 1", len(debs))
	}
	if _, err := run(ctx, src, nil, "dpkg", "-x", debs[0], "root"); err != nil {
		return err
	}
	for _, dir := range []string{"usr/sbin", "usr/bin", "sbin", "bin"} {
		if _, err := os.Stat(filepath.Join(src, "root", dir, program)); err == nil {
			return install(filepath.Join(src, "root", dir), filepath.Join(c.dir, "bin"), program)
		}
	}
	return fmt.Errorf("the package has no program %s", program)
}

func (c cache) has(program string) bool { return holds(filepath.Join(c.dir, "bin"), program) }

// holds reports whether a directory has all the programs.
func holds(dir string, programs ...string) bool {
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			return false
		}
	}
	return true
}

// install moves finished programs into a directory of the cache, each atomically.
func install(from, to string, programs ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		if err := os.Rename(filepath.Join(from, p), filepath.Join(to, p)); err != nil {
			return err
		}
	}
	return nil
}

// goTool runs the Go command in one of our modules, independent of the surrounding workspace and flags.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	env := []string{"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod"}
	if dir == "." {
		env[2] = "GOFLAGS=-buildvcs=false"
	}
	return run(ctx, dir, env, "go", args...)
}

// run runs a command and returns its output. An error has the end of the output.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	return output(cmd)
}

func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String() + stdout.String())
		if most := 2000; len(said) > most {
			said = "... " + said[len(said)-most:]
		}
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
	}
	return stdout.String(), nil
}
