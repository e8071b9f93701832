// Command aa measures how far equal runs differ: it runs one plan several times and compares the results with one another.
// Nothing differs between them, so every difference is the machine's or the method's.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/tool/insert"
)

// plan is what every run measures.
var plan = []string{
	"--profiles", "raw,flannel-vxlan,canal,calico-vxlan,cilium-native",
	"--paths", "pod-to-pod/cross-node,pod-to-pod/same-node,pod-to-service/remote",
	"--workloads", "stream,rr,crr", "--repetitions", "8", "--duration", "500ms",
}

func main() {
	runs := flag.Int("runs", 3, "equal `runs`, at least 2")
	document := flag.String("document", "", "Markdown `file` whose table of equal runs is replaced")
	keep := flag.String("keep", "", "`directory` for the results; empty removes them")
	flag.Parse()
	if flag.NArg() != 1 || *runs < 2 {
		fmt.Fprintln(os.Stderr, "usage: aa [-runs N] [-document FILE] [-keep DIR] CNIBENCH")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := campaign(ctx, flag.Arg(0), *runs, *document, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "aa:", err)
		os.Exit(1)
	}
}

// campaign measures, compares and writes the table.
func campaign(ctx context.Context, program string, runs int, document, dir string) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "aa-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	var files []string
	var all []report
	for n := 1; n <= runs; n++ {
		file := filepath.Join(dir, fmt.Sprintf("%d.jsonl", n))
		files = append(files, file)
		if _, err := output(ctx, program, append([]string{"run", "--format", "none", "-o", file}, plan...)...); err != nil {
			return err
		}
		var r report
		if err := read(ctx, &r, program, "report", "-f", "json", file); err != nil {
			return err
		}
		all = append(all, r)
	}
	var pairs []pair
	for i := range files {
		for _, other := range files[i+1:] {
			var p pair
			if err := read(ctx, &p, program, "compare", "-f", "json", files[i], other); err != nil {
				return err
			}
			pairs = append(pairs, p)
		}
	}
	table := render(plan, all, pairs)
	fmt.Print(table)
	if document == "" {
		return nil
	}
	return insert.Table(document, "aa", table)
}

// judged is the exit code of a comparison in which something is worse.
const judged = 3

// output runs the program and returns its standard output. A comparison may find something worse.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, story strings.Builder
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&story, os.Stderr)
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == judged {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, story.String())
	}
	return out.String(), nil
}

// read decodes the JSON that the program writes.
func read(ctx context.Context, v any, program string, args ...string) error {
	out, err := output(ctx, program, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), v)
}
