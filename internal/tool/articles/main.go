// Command articles repeats the four published comparisons in the lab by `cnibench reproduce`, and writes each of their figures
// and claims with what became of it.
//
// Read campaign (what is measured) and table.go (what is written).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	_ "github.com/cnibench/cnibench/internal/external" // a result names tools
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/tool/toolbox"
)

// campaign is what was asked for.
type campaign struct{ program, dir, budget, document string }

func main() {
	var c campaign
	flag.StringVar(&c.budget, "budget", "5m", "`time` for each article")
	flag.StringVar(&c.dir, "keep", "", "`directory` for the results; those that are there are judged again and not measured; empty removes them")
	flag.StringVar(&c.document, "document", "", "Markdown `file` whose table is replaced; figures go to "+figuresFile+" beside it")
	flag.Parse()
	if c.program = flag.Arg(0); flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: articles [-budget TIME] [-keep DIR] [-document FILE] CNIBENCH")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "articles:", err)
		os.Exit(1)
	}
}

// run measures what has no result yet, and writes the tables of all articles.
func (c campaign) run(ctx context.Context) (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "cnibench-articles-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	}
	var all []article
	for _, s := range findings.Published().Sources {
		a, err := c.article(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.ID, err)
		}
		all = append(all, a)
	}
	text := page(all)
	if c.document == "" {
		fmt.Print(text, "\n\n", figures(all))
		return nil
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(c.document), figuresFile), []byte(figures(all)), 0o644); err != nil {
		return err
	}
	return toolbox.Table(c.document, "articles", c.program, text)
}

// article measures an article unless it was, and judges the result.
func (c campaign) article(ctx context.Context, s findings.Source) (article, error) {
	file := filepath.Join(c.dir, s.ID+".jsonl")
	if _, err := os.Stat(file); err != nil {
		fmt.Fprintf(os.Stderr, "articles: %s\n", s.Title)
		cmd := exec.CommandContext(ctx, c.program, "reproduce", s.ID, "--budget", c.budget, "-o", file, "--format", "json")
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Run(); err != nil {
			return article{}, err
		}
	}
	cmd := exec.CommandContext(ctx, c.program, "reproduce", "--result", file, "--format", "json", s.ID)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return article{}, err
	}
	a := article{source: s}
	if err := json.Unmarshal(out, &a); err != nil {
		return a, err
	}
	content, err := result.Load(file)
	a.header = content.Header
	a.command = "cnibench reproduce " + s.ID
	if b := a.header.Plan.Budget; b > 0 {
		a.command += " --budget " + strings.Replace(b.String(), "m0s", "m", 1)
	}
	return a, err
}
