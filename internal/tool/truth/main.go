package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/tool/toolbox"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// errBusy says that the machine has other work.
var errBusy = errors.New("machine is too busy: rates and times would be those of a smaller machine")

func main() {
	repetitions := flag.Int("repetitions", 9, "repetitions of each trial, all of which count")
	document := flag.String("document", "", "Markdown file whose table of known truths is replaced")
	flag.Parse()
	if flag.NArg() != 1 {
		toolbox.Usage("truth [-repetitions N] [-document FILE] CNIBENCH")
	}
	toolbox.Exit("truth", func(ctx context.Context) error {
		err := campaign(ctx, flag.Arg(0), *repetitions, *document)
		if errors.Is(err, errBusy) {
			fmt.Fprintln(os.Stderr, "truth:", err)
			os.Exit(4)
		}
		return err
	})
}

// campaign measures every link and judges it.
func campaign(ctx context.Context, program string, repetitions int, document string) error {
	var all []verdict
	for _, l := range links() {
		c, err := measure(ctx, program, repetitions, l)
		if err != nil {
			return err
		}
		share, err := busy(c)
		if err != nil {
			return err
		}
		if share > quiet {
			return fmt.Errorf("%s: %.0f %% of the path's CPUs were busy before the run: %w", l.name, 100*share, errBusy)
		}
		all = append(all, judge(l, c)...)
	}
	if err := toolbox.Publish(document, "truth", program, render(all)); err != nil {
		return err
	}
	var wrong []error
	for _, v := range all {
		if !v.holds() {
			wrong = append(wrong, fmt.Errorf("%s, %s, %s: median %g, known %g", v.link, v.truth.workload, v.truth.metric, v.median, v.truth.want))
		}
	}
	return errors.Join(wrong...)
}

// measure runs every workload of a link between two empty namespaces.
func measure(ctx context.Context, program string, repetitions int, l link) (result.Contents, error) {
	dir, err := os.MkdirTemp("", "truth-")
	if err != nil {
		return result.Contents{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "truth.jsonl")
	var workloads []string
	seen := map[string]bool{}
	for _, x := range l.truths {
		if !seen[x.workload] {
			seen[x.workload] = true
			workloads = append(workloads, x.workload)
		}
	}
	args := append([]string{"run", "--profiles", "raw", "--no-twin", "--paths", "host-to-host/cross-node", "--workloads", strings.Join(workloads, ","),
		"--repetitions", strconv.Itoa(repetitions), "--format", "none", "-o", file}, l.flags...)
	if _, err := toolbox.Output(ctx, program, args...); err != nil {
		return result.Contents{}, fmt.Errorf("%s: %w", l.name, err)
	}
	return result.Load(file)
}

// render writes the table.
func render(all []verdict) string {
	var b strings.Builder
	b.WriteString("| link | workload | metric | known | median | all repetitions | n | within 2 % |\n|---|---|---|---|---|---|---|---|\n")
	for _, v := range all {
		unit := ""
		if m, ok := metric.Lookup(v.truth.metric); ok {
			unit = m.Unit
		}
		show := func(x float64) string {
			scale := number.Common(unit, x)
			return scale.Format(x) + " " + scale.Unit
		}
		median, spread, state := "absent", "", "no"
		if v.n > 0 {
			median = fmt.Sprintf("%s (%+.2f %%)", show(v.median), 100*v.off)
			spread = fmt.Sprintf("%+.2f to %+.2f %%", 100*v.low, 100*v.high)
		}
		if v.holds() {
			state = "yes"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %d | %s |\n", v.link, v.truth.workload, v.truth.metric, show(v.truth.want), median, spread, v.n, state)
	}
	return b.String()
}
