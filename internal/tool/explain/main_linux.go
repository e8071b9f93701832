// Command explain tests explanations of CPU time. It plants a cost of known place into one of two equal instances of a
// profile, measures both with samples in turn, and asks which part the difference went to.
//
// Read plants (what is planted) and row (what came of it).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/tool/insert"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func main() {
	names := strings.Join(each.Of(plants, func(p plant) string { return p.name }), ",")
	only := flag.String("plants", names, "`costs` that are planted")
	document := flag.String("document", "", "Markdown `file` whose table is replaced")
	dir := flag.String("keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	flag.Parse()
	chosen := slices.DeleteFunc(slices.Clone(plants), func(p plant) bool { return !strings.Contains(","+*only+",", ","+p.name+",") })
	if flag.NArg() != 1 || len(chosen) == 0 {
		fmt.Fprintf(os.Stderr, "usage: explain [-plants %s] [-document FILE] [-keep DIR] CNIBENCH\n", names)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, flag.Arg(0), *dir, *document, chosen); err != nil {
		fmt.Fprintln(os.Stderr, "explain:", err)
		os.Exit(1)
	}
}

// write measures plants with a cnibench and writes the table.
func write(ctx context.Context, program, dir, document string, chosen []plant) error {
	if dir == "" {
		made, err := os.MkdirTemp("", "explain-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d windows of %s and as many sampled trials for each side, on %s under %s; %d samples in a second.\n\n", repetitions, window, path, workload, rate)
	b.WriteString("| planted | difference, µs/transaction | in the right part | share | most elsewhere | not explained |\n|---|---|---|---|---|---|\n")
	for _, p := range chosen {
		file := filepath.Join(dir, p.name+".jsonl")
		if _, err := os.Stat(file); err != nil {
			fmt.Fprintf(os.Stderr, "explain: %s: %s\n", p.title, file)
			if err := measure(ctx, program, p, file); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", file, err), os.Remove(file))
			}
		}
		line, err := row(p, file)
		if err != nil {
			return err
		}
		b.WriteString(line)
	}
	fmt.Print(b.String())
	if document == "" {
		return nil
	}
	return insert.Table(document, "explain", b.String())
}

// row says where the difference went.
func row(p plant, file string) (string, error) {
	d, err := difference(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	scale := number.Scale{Unit: "µs", Size: 1e3}
	right, unexplained := 0.0, 0.0
	most := explain.Change{Part: explain.Part{Title: "nothing"}}
	for _, c := range d.Changes {
		switch {
		case slices.Contains(p.parts, c.ID):
			right += c.By.Value
		case c.ID == explain.Unexplained.ID:
			unexplained = c.By.Value
		case abs(c.By.Value) > abs(most.By.Value):
			most = c
		}
	}
	noise := ""
	if most.Noise {
		noise = ", within the noise"
	}
	return fmt.Sprintf("| %s | %s (%s to %s) | %s: %s | %.0f %% | %s: %s (%.0f %%%s) | %s |\n", p.title,
		scale.Format(d.Total.Value), scale.Format(d.Total.Low), scale.Format(d.Total.High), strings.Join(p.parts, " + "), scale.Format(right),
		100*right/d.Total.Value, most.Title, scale.Format(most.By.Value), 100*abs(most.By.Value/d.Total.Value), noise, scale.Format(unexplained)), nil
}

func abs(v float64) float64 { return max(v, -v) }

// difference reads a result and explains its two sides.
func difference(file string) (explain.Difference, error) {
	f, err := os.Open(file)
	if err != nil {
		return explain.Difference{}, err
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, file)
	if err != nil {
		return explain.Difference{}, err
	}
	var timed compare.Collector
	var sampled explain.Collector
	if err := r.Each(func(rec *result.Record) error { return errors.Join(timed.Add(rec), sampled.Add(rec)) }); err != nil {
		return explain.Difference{}, err
	}
	a, err := timed.Analyse(r.Header(), compare.Options{})
	if err != nil {
		return explain.Difference{}, err
	}
	sides := sampled.Sides(a)
	if len(sides) != 2 {
		return explain.Difference{}, fmt.Errorf("%d sides were sampled", len(sides))
	}
	if sides[0].Profile.IsTwin() {
		sides[0], sides[1] = sides[1], sides[0]
	}
	d, ok := explain.Between(a, sides[0], sides[1])
	if !ok {
		return d, fmt.Errorf("no parts: %s", sides[0].Failure+sides[1].Failure)
	}
	return d, nil
}
