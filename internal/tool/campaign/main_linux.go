// Command campaign measures what is known before, and writes its table into a page of docs/results. `make NAME` runs it:
//
//	campaign NAME [FLAG...] CNIBENCH
//
// Exit codes: 0 the table is written, 1 the campaign failed or a number is not what it must be, 2 usage, 4 the machine is
// too busy.
//
// Read campaigns (what there is), then the file of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// campaign is what is measured for one page.
type campaign interface {
	// flags adds the flags that it alone has.
	flags(f *flag.FlagSet)
	// measure returns the table, also beside an error about the numbers in it.
	measure(ctx context.Context, in setting) (table string, err error)
}

var campaigns = map[string]campaign{
	"aa": &equalRuns{}, "articles": &articles{}, "diagnose": plantedFaults{}, "duet": &duet{}, "explain": &explanations{},
	"fidelity": &clusters{}, "gate": &gate{}, "power": &power{}, "truth": &truths{},
}

// setting is what every campaign gets: the cnibench that measures, the page, and the directory of results.
type setting struct{ program, document, dir string }

func main() {
	if len(os.Args) < 2 || campaigns[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: campaign NAME [FLAG...] CNIBENCH; NAME is one of", slices.Sorted(maps.Keys(campaigns)))
		os.Exit(2)
	}
	name := os.Args[1]
	var in setting
	f := flag.NewFlagSet("campaign "+name, flag.ExitOnError)
	f.StringVar(&in.document, "document", "", "Markdown `file` whose table is replaced")
	f.StringVar(&in.dir, "keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	campaigns[name].flags(f)
	_ = f.Parse(os.Args[2:]) // a fault ends the process
	if in.program = f.Arg(0); f.NArg() != 1 {
		f.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := in.run(ctx, name, campaigns[name]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", f.Name(), err)
		if errors.Is(err, errBusy) {
			os.Exit(4)
		}
		os.Exit(1)
	}
}

// choose adds a flag whose value is names of all, separated by commas. Without it, some are all if they are none.
func choose[T fmt.Stringer](f *flag.FlagSet, some *[]T, name, usage string, all []T) {
	names := strings.Join(each.Of(all, T.String), ",")
	if *some == nil {
		*some = all
	}
	f.Func(name, usage+": "+names, func(text string) error {
		*some = nil
		for name := range strings.SplitSeq(text, ",") {
			i := slices.IndexFunc(all, func(x T) bool { return x.String() == name })
			if i < 0 {
				return fmt.Errorf("no %q in %s", name, names)
			}
			*some = append(*some, all[i])
		}
		return nil
	})
}

// run measures, prints the table, and writes it into the document unless that is empty.
func (in setting) run(ctx context.Context, name string, c campaign) (err error) {
	if in.dir == "" {
		if in.dir, err = os.MkdirTemp("", "cnibench-campaign-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(in.dir)) }()
	}
	table, err := c.measure(ctx, in)
	fmt.Print(table)
	if table == "" || in.document == "" {
		return err
	}
	return errors.Join(err, in.publish(name, table))
}

// publish replaces the table of a campaign in the document, and says below which version the program is. It fails if parts
// does, if the document cannot be written, or if the program does not know its version.
func (in setting) publish(name, table string) error {
	before, _, after, err := parts(in.document, name)
	if err != nil {
		return err
	}
	version, err := exec.Command(in.program, "version").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", in.program, err)
	}
	return os.WriteFile(in.document, fmt.Appendf(nil, "%s\n%s\nWritten by `%s`.\n\n%s", before, table, strings.TrimSpace(string(version)), after), 0o644)
}

// parts are the text of a document up to and with the comment <!-- NAME: written by make NAME -->, what stands between, and
// the rest from <!-- end of NAME -->. It fails if the document cannot be read or lacks the comments.
func parts(document, name string) (before, table, after string, err error) {
	begin, end := fmt.Sprintf("<!-- %s: written by make %[1]s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	text, err := os.ReadFile(document)
	if err != nil {
		return "", "", "", err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("%s: no table of %s between %q and %q", document, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin, table, end + after, nil
}

// results returns the file of results of a name. It has them measured unless they are there, and removes a file that was not
// completed.
func (in setting) results(name string, measure func(file string) error) (file string, err error) {
	file = filepath.Join(in.dir, name+".jsonl")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "campaign:", file)
	if err := measure(file); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", file, err), os.RemoveAll(file))
	}
	return file, nil
}

// output runs a command until it ends, or interrupts it when ctx does, and returns its standard output. The error has what it
// said.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, story strings.Builder
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&story, os.Stderr)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, story.String())
	}
	return out.String(), nil
}

// analyse reads a result file. It calls also for every record, too.
func analyse(file string, also func(*result.Record) error) (compare.Side, error) {
	f, err := os.Open(file)
	if err != nil {
		return compare.Side{}, err
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, file)
	if err != nil {
		return compare.Side{}, err
	}
	var c compare.Collector
	if err := r.Each(func(rec *result.Record) error { return errors.Join(c.Add(rec), also(rec)) }); err != nil {
		return compare.Side{}, err
	}
	a, err := c.Analyse(r.Header(), compare.Options{})
	return compare.Side{Name: file, Header: r.Header(), Analysis: a}, err
}
