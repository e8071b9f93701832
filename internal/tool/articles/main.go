// Command articles repeats the four published comparisons in the lab by `cnibench reproduce`, and writes each of their
// figures and claims with its outcome.
//
// Read campaign (what is measured) and table.go (what is written).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
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
		toolbox.Usage("articles [-budget TIME] [-keep DIR] [-document FILE] CNIBENCH")
	}
	toolbox.Exit("articles", func(ctx context.Context) error {
		return toolbox.Kept(c.dir, func(dir string) error {
			c.dir = dir
			return c.run(ctx)
		})
	})
}

// run measures what has no result yet, and writes the tables of all articles.
func (c campaign) run(ctx context.Context) error {
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
		if _, err := toolbox.Output(ctx, c.program, "reproduce", s.ID, "--budget", c.budget, "-o", file, "--format", "json"); err != nil {
			return article{}, err
		}
	}
	out, err := toolbox.Output(ctx, c.program, "reproduce", "--result", file, "--format", "json", s.ID)
	if err != nil {
		return article{}, err
	}
	a := article{source: s}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
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
