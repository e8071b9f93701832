// Command weight prints how large the project is and what the product weighs: `make size` and `make weight` run it.
//
//	weight size                lines of the product, of tools, of tests and of C, by folder
//	weight binary [BINARY]     its bytes, the time of a build from nothing, and what an agent takes to start
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "weight:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "size":
		return size()
	case len(args) == 2 && args[0] == "binary":
		return weigh(args[1])
	}
	return errors.New("usage: weight size | weight binary BINARY")
}

// lines are the numbers of lines of one folder. product is what the binary is built from on any system; tool is a
// maintainers' program below internal/tool; test includes packages that only tests import.
type lines struct{ product, tool, generated, test, c int }

func (l *lines) add(o lines) {
	l.product, l.tool, l.generated, l.test, l.c = l.product+o.product, l.tool+o.tool, l.generated+o.generated, l.test+o.test, l.c+o.c
}

// size prints the lines of each folder of the working directory, and the number of packages that the binary is built from.
func size() error {
	shipped, err := linked()
	if err != nil {
		return err
	}
	all := map[string]*lines{}
	total := lines{}
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		one := count(name, text, shipped)
		folder := folderOf(name)
		if all[folder] == nil {
			all[folder] = &lines{}
		}
		all[folder].add(one)
		total.add(one)
		return nil
	})
	if err != nil {
		return err
	}
	const row = "%-28s %8v %8v %10v %8v %8v\n"
	fmt.Printf(row, "folder", "product", "tools", "generated", "tests", "BPF C")
	for _, folder := range sorted(all) {
		if l := *all[folder]; l != (lines{}) {
			fmt.Printf(row, folder, l.product, l.tool, l.generated, l.test, l.c)
		}
	}
	fmt.Printf(row, "total", total.product, total.tool, total.generated, total.test, total.c)
	fmt.Printf("packages of the product: %d\n", len(shipped))
	fmt.Printf("lines of tests for each line of product: %.2f\n", float64(total.test)/float64(max(total.product, 1)))
	return nil
}

func sorted(all map[string]*lines) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// linked returns the folders of this module whose packages are in the binary on Linux or on darwin.
func linked() (map[string]bool, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", ".")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, folder := range strings.Fields(string(out)) {
			if folder, err = filepath.Rel(here, folder); err != nil {
				return nil, err
			}
			folders[folder] = true
		}
	}
	return folders, nil
}

// count returns the lines of a file by their kind. shipped are the folders whose packages are in the binary.
func count(name string, text []byte, shipped map[string]bool) lines {
	n := bytes.Count(text, []byte("\n"))
	switch {
	case strings.HasSuffix(name, "_test.go"):
		return lines{test: n}
	case strings.HasSuffix(name, ".go") && bytes.HasPrefix(text, []byte("// Code generated")):
		return lines{generated: n}
	case !strings.HasSuffix(name, ".go"):
	case shipped[filepath.Dir(name)]:
		return lines{product: n}
	case strings.HasPrefix(name, "internal/tool/"):
		return lines{tool: n}
	default:
		return lines{test: n}
	}
	switch {
	case strings.HasSuffix(name, ".c"), strings.HasSuffix(name, ".h"):
		return lines{c: n}
	}
	return lines{}
}

// folderOf returns the folder that a file is counted in: two levels below internal, one elsewhere.
func folderOf(name string) string {
	parts := strings.Split(filepath.ToSlash(filepath.Dir(name)), "/")
	if parts[0] == "internal" {
		return strings.Join(parts[:min(len(parts), 3)], "/")
	}
	return parts[0]
}

// weigh prints the size of a binary and the time to build it with an empty cache.
func weigh(binary string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	fmt.Printf("binary                     %.1f MB\n", float64(info.Size())/1e6)
	starts, err := starts(binary)
	if err != nil {
		return err
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.took, b.took) })
	fmt.Printf("agent's start to hello     %.1f ms at best, %.1f ms median of %d\n", starts[0].took.Seconds()*1e3, starts[len(starts)/2].took.Seconds()*1e3, len(starts))
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.memory, b.memory) })
	fmt.Printf("agent's own memory         %.1f MB (anonymous, median)\n", float64(starts[len(starts)/2].memory)/1e6)
	took, err := build()
	if err != nil {
		return err
	}
	fmt.Printf("build with an empty cache  %.0f s\n", took.Seconds())
	return nil
}

// start is one start of an agent: the time to its first line, and its own bytes at that moment.
type start struct {
	took   time.Duration
	memory int64
}

// runs is how often an agent is started.
const runs = 30

func starts(binary string) ([]start, error) {
	var all []start
	for range runs {
		s, err := startOnce(binary)
		if err != nil {
			return nil, fmt.Errorf("%s agent: %w", binary, err)
		}
		all = append(all, s)
	}
	return all, nil
}

func startOnce(binary string) (s start, err error) {
	cmd := exec.Command(binary, "agent")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	_, err = bufio.NewReader(stdout).ReadString('\n')
	s.took = time.Since(began)
	if err == nil {
		s.memory, err = anonymous(cmd.Process.Pid)
	}
	stdin.Close()
	return s, errors.Join(err, cmd.Wait())
}

// anonymous returns the bytes of a process that are backed by no file.
func anonymous(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Anonymous:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("smaps_rollup does not say what is anonymous")
}

// build builds the product with an empty cache and returns how long it took. Modules come from the machine's cache.
func build() (time.Duration, error) {
	cache, err := os.MkdirTemp("", "cnibench-weight-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(cache)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(cache, "cnibench"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+cache)
	cmd.Stderr = os.Stderr
	began := time.Now()
	err = cmd.Run()
	return time.Since(began), err
}
