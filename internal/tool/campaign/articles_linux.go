package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/cnibench/cnibench/internal/external" // a result names tools
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// articles repeats the four published comparisons in the lab by `cnibench reproduce`, and writes each of their figures and
// claims with the verdict on it.
type articles struct{ budget string }

func (c *articles) flags(f *flag.FlagSet) {
	f.StringVar(&c.budget, "budget", "5m", "`time` for each article")
}

// measure returns the page. It writes the figures into a file beside the document, or prints them.
func (c *articles) measure(ctx context.Context, in setting) (string, error) {
	var all []article
	for _, s := range findings.Published().Sources {
		a, err := c.article(ctx, in, s)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.ID, err)
		}
		all = append(all, a)
	}
	if in.document == "" {
		fmt.Print(figures(all))
		return page(all), nil
	}
	return page(all), os.WriteFile(filepath.Join(filepath.Dir(in.document), figuresFile), []byte(figures(all)), 0o644)
}

// article measures an article and judges the result.
func (c *articles) article(ctx context.Context, in setting, s findings.Source) (article, error) {
	a := article{source: s, command: "cnibench reproduce " + s.ID}
	file, err := in.results(s.ID, func(file string) error {
		_, err := output(ctx, in.program, "reproduce", s.ID, "--budget", c.budget, "-o", file, "--format", "json")
		return err
	})
	if err != nil {
		return a, err
	}
	out, err := output(ctx, in.program, "reproduce", "--result", file, "--format", "json", s.ID)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		return a, err
	}
	content, err := result.Load(file)
	a.header = content.Header
	if b := a.header.Plan.Budget; b > 0 {
		a.command += " --budget " + strings.Replace(b.String(), "m0s", "m", 1)
	}
	return a, err
}

// article is what `cnibench reproduce` says of a result, by the names of its JSON.
type article struct {
	Figures []figure
	Claims  []claim
	Checks  []struct{ Findings []any }
	source  findings.Source
	header  result.Header
	command string
}

type figure struct {
	Profile, Path, Workload, Metric, Unit string
	Published, Ratio                      *float64
	Claimed                               *float64 `json:"published_ratio"`
	Low                                   *float64 `json:"ratio_low"`
	High                                  *float64 `json:"ratio_high"`
	Outcome, Why                          string
}

type claim struct {
	ID, Statement, Outcome string
	Evidence               []string
}

// states are the outcomes of figures and claims, in the order of columns.
var states = []string{"reproduced", "reproduced in part", "contradicted", "inconclusive", "not comparable"}

// stateOf gives figures and claims one word for what does not compare.
func stateOf(outcome string) string {
	if outcome == string(findings.NotTestable) {
		return states[len(states)-1]
	}
	return outcome
}

// page is all that the campaign writes.
func page(all []article) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| article | | %s |\n|---|---|%s\n", strings.Join(states, " | "), strings.Repeat("---|", len(states)))
	for _, a := range all {
		figures, claims := map[string]int{}, map[string]int{}
		for _, f := range a.Figures {
			figures[stateOf(f.Outcome)]++
		}
		for _, c := range a.Claims {
			claims[stateOf(c.Outcome)]++
		}
		row := func(what string, n map[string]int) {
			fmt.Fprintf(&b, "| `%s` | %s |", a.source.ID, what)
			for _, s := range states {
				fmt.Fprintf(&b, " %d |", n[s])
			}
			b.WriteString("\n")
		}
		row("figures", figures)
		row("claims", claims)
	}
	for _, a := range all {
		a.write(&b)
	}
	return b.String()
}

// write writes an article: how it was repeated, its claims, its figures.
func (a article) write(b *strings.Builder) {
	h := a.header
	fmt.Fprintf(b, "\n## %s\n\n`%s`, kernel %s, %s, %s CPUs, placement: %s, %s windows of %s.", number.Markdown(a.source.Title), a.command,
		number.Markdown(h.Facts[facts.Kernel]), number.Markdown(h.Facts[facts.CPUModel]), h.Facts[facts.CPUs], number.Markdown(h.Facts[facts.Placement]),
		fmt.Sprint(h.Plan.Repetitions), h.Plan.Duration)
	if len(a.Checks) == 2 {
		fmt.Fprintf(b, " `cnibench check` has %s about the article, %s about this run.", number.Counted(len(a.Checks[0].Findings), "finding"),
			number.Counted(len(a.Checks[1].Findings), "finding"))
	}
	b.WriteString("\n\n| claim | state | evidence |\n|---|---|---|\n")
	for _, c := range a.Claims {
		evidence := ""
		if len(c.Evidence) > 0 {
			evidence = c.Evidence[0]
		}
		if more := len(c.Evidence) - 1; more > 0 {
			evidence += fmt.Sprintf("; and %d more", more)
		}
		fmt.Fprintf(b, "| `%s`: %s | %s | %s |\n", c.ID, number.Markdown(c.Statement), stateOf(c.Outcome), number.Markdown(evidence))
	}
	fmt.Fprintf(b, "\nIts %s are in [articles.csv](%s).\n", number.Counted(len(a.Figures), "figure"), figuresFile)
}

// figuresFile is the file of all figures, beside the page.
const figuresFile = "data/articles.csv"

// figures returns the figures of all articles as CSV.
func figures(all []article) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	rows := [][]string{{"article", "profile", "path", "workload", "metric", "published", "published ratio", "ratio", "ratio low", "ratio high", "state", "why"}}
	for _, a := range all {
		for _, f := range a.Figures {
			rows = append(rows, append([]string{a.source.ID}, f.row()...))
		}
	}
	_ = w.WriteAll(rows) // a strings.Builder does not fail
	return b.String()
}

// row returns the fields of a figure.
func (f figure) row() []string {
	published, why, state := "", "", stateOf(f.Outcome)
	if f.Published != nil {
		published = number.WithUnit(f.Unit, *f.Published)
	}
	if state == states[len(states)-1] {
		why = f.Why
	}
	ratio := func(v *float64) string {
		if v == nil {
			return ""
		}
		return number.Ratio(*v)
	}
	return []string{f.Profile, f.Path, f.Workload, f.Metric, published, ratio(f.Claimed), ratio(f.Ratio), ratio(f.Low), ratio(f.High), state, why}
}
