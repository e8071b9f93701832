package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// Exit calls run with a context that an interrupt ends. An error ends the process, called name.
func Exit(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Usage prints what a command line must be, and ends the process.
func Usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "usage: "+format+"\n", args...)
	os.Exit(2)
}

// Kept calls do with the directory for the results of a campaign: keep, or one that is removed afterwards if keep is empty.
func Kept(keep string, do func(dir string) error) error {
	if keep != "" {
		if err := os.MkdirAll(keep, 0o777); err != nil {
			return err
		}
		return do(keep)
	}
	made, err := os.MkdirTemp("", "cnibench-campaign-")
	if err != nil {
		return err
	}
	return errors.Join(do(made), os.RemoveAll(made))
}

// Publish prints a table, and writes it into a document unless that is empty, as Table does.
func Publish(document, name, program, table string) error {
	fmt.Print(table)
	if document == "" {
		return nil
	}
	return Table(document, name, program, table)
}

// Output runs a command until it ends, or interrupts it when ctx does, and returns its standard output. The error has what it
// said.
func Output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, story strings.Builder
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&story, os.Stderr)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, story.String())
	}
	return out.String(), nil
}

// Analyse reads a result file. It calls each for every record, too.
func Analyse(file string, each func(*result.Record) error) (compare.Side, error) {
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
	if err := r.Each(func(rec *result.Record) error { return errors.Join(c.Add(rec), each(rec)) }); err != nil {
		return compare.Side{}, err
	}
	a, err := c.Analyse(r.Header(), compare.Options{})
	return compare.Side{Name: file, Header: r.Header(), Analysis: a}, err
}
