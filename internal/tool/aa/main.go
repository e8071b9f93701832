// Command aa measures how far equal runs differ: it runs one plan several times, alone and beside neighbours that disturb it,
// and compares the results with one another. Nothing differs between them, so every difference is the machine's or the
// method's.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/tool/toolbox"
)

// plan is what every run measures.
var plan = []string{
	"--profiles", "raw,flannel-vxlan,canal,calico-vxlan,cilium-native",
	"--paths", "pod-to-pod/cross-node,pod-to-pod/same-node,pod-to-service/remote",
	"--workloads", "stream,rr,crr",
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 3, "equal `runs` beside each neighbour, at least 2")
	beside := flag.String("beside", toolbox.Names(toolbox.All), "`neighbours`, separated by commas")
	flag.IntVar(&o.pairs, "pairs", 60, "`pairs` of equal short files, half of them with a neighbour in one of the two; 0 for none")
	flag.StringVar(&o.table, "table", "", "`file` of what equal runs differ by beyond their errors, which compare allows for")
	flag.StringVar(&o.document, "document", "", "Markdown `file` whose table of equal runs is replaced")
	flag.StringVar(&o.dir, "keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	flag.Parse()
	var err error
	o.program = flag.Arg(0)
	if o.beside, err = toolbox.Parse(*beside); err != nil || flag.NArg() != 1 || o.runs < 2 {
		toolbox.Usage("aa [-runs N] [-pairs N] [-beside %s] [-table FILE] [-document FILE] [-keep DIR] CNIBENCH", toolbox.Names(toolbox.All))
	}
	toolbox.Exit("aa", func(ctx context.Context) error {
		return toolbox.Kept(o.dir, func(dir string) error {
			o.dir = dir
			return write(ctx, o)
		})
	})
}

// options are what the command is asked for.
type options struct {
	program, document, table, dir string
	runs, pairs                   int
	beside                        []toolbox.Neighbour
}

// write measures beside each neighbour, and writes the tables.
func write(ctx context.Context, o options) error {
	text := ""
	if o.pairs > 0 {
		m, err := measureMany(ctx, o)
		if err != nil {
			return err
		}
		text = m.render() + "\n"
		if o.table != "" {
			if err := os.WriteFile(o.table, []byte(table(beyond(m.quiet, false), beyond(noisy(m.disturbed), true))), 0o666); err != nil {
				return err
			}
		}
	}
	text += fmt.Sprintf("`cnibench run %s`, %d times beside each neighbour:\n", strings.Join(plan, " "), o.runs)
	for _, n := range o.beside {
		c, err := measure(ctx, o, n)
		if err != nil {
			return err
		}
		text += "\n" + c.render(n.About)
	}
	return toolbox.Publish(o.document, "aa", o.program, text)
}

// measure makes the runs beside a neighbour that are not there yet, and compares all.
func measure(ctx context.Context, o options, beside toolbox.Neighbour) (campaign, error) {
	var c campaign
	dir := filepath.Join(o.dir, beside.Name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return c, err
	}
	var files []string
	for n := 1; n <= o.runs; n++ {
		file := filepath.Join(dir, fmt.Sprintf("%d.jsonl", n))
		files = append(files, file)
		if err := run(ctx, o.program, file, beside, plan); err != nil {
			return c, err
		}
		var r report
		if _, err := read(ctx, &r, o.program, "report", "-f", "json", file); err != nil {
			return c, err
		}
		c.reports = append(c.reports, r)
	}
	for i := range files {
		for _, other := range files[i+1:] {
			var p pair
			alarm, err := read(ctx, &p, o.program, "compare", "-f", "json", files[i], other)
			if err != nil {
				return c, err
			}
			if alarm {
				c.alarms++
			}
			c.pairs = append(c.pairs, p)
		}
	}
	return c, nil
}

// run measures a plan beside a neighbour into a file, unless the file is there.
func run(ctx context.Context, program, file string, beside toolbox.Neighbour, plan []string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	stop := beside.Start(ctx)
	defer stop()
	_, _, err := output(ctx, program, append([]string{"run", "--format", "none", "-o", file}, plan...)...)
	return err
}

// Exit codes of a comparison in which something is worse, and of one that decides nothing.
const (
	worse     = 3
	undecided = 4
)

// output runs the program and returns its standard output, and whether it found something worse.
func output(ctx context.Context, program string, args ...string) (text string, alarm bool, err error) {
	text, err = toolbox.Output(ctx, program, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == worse || exit.ExitCode() == undecided) {
		return text, exit.ExitCode() == worse, nil
	}
	return text, false, err
}

// read decodes the JSON that the program writes.
func read(ctx context.Context, v any, program string, args ...string) (alarm bool, err error) {
	out, alarm, err := output(ctx, program, args...)
	if err != nil {
		return false, err
	}
	return alarm, json.Unmarshal([]byte(out), v)
}
