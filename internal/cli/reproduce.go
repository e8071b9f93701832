package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/examples"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const reproduceLong = `Repeat a published comparison and print each of its figures beside yours: reproduced, contradicted, inconclusive, or not
comparable and why. Without an article it lists them. Absolute rates belong to a machine, so ratios are compared.

By default a run takes five minutes: windows are shorter than the article's, cases are repeated and interleaved. --exact
keeps windows, repetitions, tools and order of the article; that may take hours, and one repetition has no interval.
The article's tools send where they are installed and their windows of whole seconds fit; otherwise the engine of
cnibench does, and the output says so.

With --result nothing is measured: the file is compared with the article. Without an article, every published claim is judged
by it: reproduced, in part, contradicted, inconclusive, or not testable here, each with its evidence. In part: the direction
holds and the size does not, or not all was measured.

Exit codes: 0 if it was judged, whatever came out. With --fail-on, 3 if something is contradicted, 4 if inconclusive.`

// reproduction is one invocation of reproduce: a measurement that ends with another report.
type reproduction struct {
	measurement
	result, claims string
	// failing are the outcomes that fail the command.
	failing []string
	source  findings.Source
}

func reproduceCommand(p *program) *cobra.Command {
	a := reproduction{measurement: measurement{program: p}}
	var article articlePlan
	cmd := &cobra.Command{
		Use: "reproduce [ARTICLE]", Short: "Repeat a published comparison, its numbers beside yours", Long: reproduceLong, Args: newArgumentCheck(0, 1, "one article or none"),
		Example:           "  sudo cnibench reproduce rke2\n  cnibench reproduce --result result.jsonl",
		ValidArgsFunction: argumentCompletion(func() []string { return sourceIDs(findings.Published()) }, cobra.ShellCompDirectiveNoFileComp),
		RunE:              a.run,
	}
	a.plan.article = &article
	// What of the article is measured may change, for how long, and on which nodes. The conditions are the article's.
	a.plan.declareSettings(cmd, func(s plan.Setting) bool {
		return s.Group() != plan.GroupLab && !slices.Contains(chosenByArticle, s.Flag)
	})
	f := cmd.Flags()
	f.BoolVar(&article.exact, "exact", false, "windows, repetitions, tools and order of the article")
	f.BoolVar(&article.own, "own", false, "send with the engine of cnibench alone, not with the article's tools")
	f.StringVar(&a.result, "result", "", "judge this result `file` and measure nothing")
	f.StringVar(&a.claims, "claims", "", "with --result: `file` of claims in place of the published ones")
	f.StringSliceVar(&a.failing, "fail-on", nil, "`outcomes` that fail the command: contradicted, inconclusive")
	f.StringVarP(&a.output, "output", "o", "", "result `file` (default ARTICLE.jsonl)")
	declareFormatFlag(cmd, &a.report.format, documentNames)
	a.declareFlags(cmd)
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr")
	f.StringVar(&p.charts, chartsFlag, "", "`directory` or file of charts and manifests for --install and --env kind")
	cmd.MarkFlagsMutuallyExclusive("exact", "own")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	groupFlags(cmd, plan.GroupWhat, true, "exact", "own")
	groupFlags(cmd, groupOutput, true, "output", "result", "fail-on", "format", "dry-run", "quiet")
	groupFlags(cmd, groupOutput, false, "claims", "all", "force", "verbose")
	groupFlags(cmd, plan.GroupCluster, false, "kubeconfig", chartsFlag)
	return cmd
}

// chosenByArticle are the flags that reproduce does not have, besides those of the lab: the article's plan sets them.
var chosenByArticle = []string{toolFlag, "load", "pairs", "concurrency", "flows", "message", "session-affinity", "service-annotations", "backend-cpu-limit"}

func sourceIDs(c findings.Claims) []string {
	return each.Of(c.Sources, func(s findings.Source) string { return s.ID })
}

// findSource returns the article whose id or plan is called name. It fails if there is no such article.
func findSource(name string) (findings.Source, error) {
	all := findings.Published()
	i := slices.IndexFunc(all.Sources, func(s findings.Source) bool { return s.ID == name || s.Plan == name })
	if i < 0 {
		ids := sourceIDs(all)
		return findings.Source{}, fmt.Errorf("there is no article %q%s: there are %s", name, advice.DidYouMean(name, ids), strings.Join(ids, ", "))
	}
	return all.Sources[i], nil
}

// printArticles prints the articles.
func printArticles(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range findings.Published().Sources {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.ID, s.Date, s.Title)
	}
	return w.Flush()
}

func (a *reproduction) run(cmd *cobra.Command, args []string) (err error) {
	switch {
	case a.claims != "" && (len(args) > 0 || a.result == ""):
		return commandUsageError(cmd, errors.New("--claims judges a file by claims of your own: add --result FILE, leave out the article"))
	case len(args) == 0 && a.result == "":
		return printArticles(a.stdout)
	case len(args) > 0:
		if a.source, err = findSource(args[0]); err != nil {
			return usageError(err)
		}
		a.plan.article.name = a.source.Plan
	}
	for _, o := range a.failing {
		if o != string(findings.Contradicted) && o != string(findings.Inconclusive) {
			return commandUsageError(cmd, fmt.Errorf("--fail-on %q: want contradicted, inconclusive", o))
		}
	}
	if a.result != "" {
		if a.plan.flagsGiven(cmd) || a.dryRun || cmd.Flags().Changed("output") {
			return commandUsageError(cmd, errors.New("--result judges a file; leave the flags of a run out"))
		}
		return a.judgeFile(a.result)
	}
	if a.output == "" {
		a.output = a.source.ID + ".jsonl"
	}
	a.show = func() error { return a.judgeFile(a.output) }
	return a.measurement.run(cmd)
}

// judgeFile compares the result file called name with the article, or without one judges all claims, and prints the
// verdicts. It fails with an exit code if there is an outcome that --fail-on lists.
func (a *reproduction) judgeFile(name string) error {
	judge := a.judgeClaims
	if a.source.ID != "" {
		judge = a.judgeArticle
	}
	d, outcomes, err := judge(name)
	if err != nil {
		return usageError(err)
	}
	format := a.report.format
	if a.report.all && format == "text" {
		format = allText
	}
	if err := a.writeDocument(format, d); err != nil {
		return err
	}
	came := func(o findings.Outcome) bool {
		return slices.Contains(a.failing, string(o)) && slices.Contains(outcomes, o)
	}
	switch {
	case came(findings.Contradicted):
		return quietError(exitWorse)
	case came(findings.Inconclusive):
		return quietError(exitInconclusive)
	}
	return nil
}

// outcomeOf returns the outcome of a claim.
func outcomeOf(j findings.Judged) findings.Outcome { return j.Outcome }

// judgeClaims judges the published claims, or those of --claims, by the result file called name. It returns the report and
// the outcomes.
func (a *reproduction) judgeClaims(name string) (report.Document, []findings.Outcome, error) {
	claims := findings.Published()
	if a.claims != "" {
		f, err := os.Open(a.claims)
		if err != nil {
			return report.Document{}, nil, fmt.Errorf("open claims: %w", err)
		}
		defer f.Close() // it was only read
		if claims, err = findings.Read(a.claims, f); err != nil {
			return report.Document{}, nil, err
		}
	}
	side, err := a.readSide(name, 0)
	if err != nil {
		return report.Document{}, nil, err
	}
	judged := findings.Judge(side.Analysis, claims.Claims)
	return report.BuildFindings(claims.Sources, judged), each.Of(judged, outcomeOf), nil
}

// judgeArticle compares the article with the result file called name. It returns the report and the outcomes.
func (a *reproduction) judgeArticle(name string) (report.Document, []findings.Outcome, error) {
	r, err := a.compareArticle(name)
	if err != nil {
		return report.Document{}, nil, err
	}
	of := each.Of(r.Figures, func(f findings.Figure) findings.Outcome { return f.Outcome })
	return report.BuildReproduction(r), append(of, each.Of(r.Claims, outcomeOf)...), nil
}

// compareArticle compares the figures and claims of the article with the result file called name.
func (a *reproduction) compareArticle(name string) (report.Reproduction, error) {
	r := report.Reproduction{Source: a.source}
	exact, _, err := (&articlePlan{name: a.source.Plan, exact: true}).startingPlan("")
	if err != nil {
		return r, err
	}
	file := "published/" + a.source.Plan + ".csv"
	text, err := examples.Articles.ReadFile(file)
	if err != nil {
		return r, err
	}
	stream, err := external.NewStream(bytes.NewReader(text), file)
	if err != nil {
		return r, err
	}
	_, published, checked, err := a.analyseResult(stream, "examples/"+file)
	if err != nil {
		return r, err
	}
	if stream, err = a.openResult(name); err != nil {
		return r, err
	}
	header, mine, found, err := a.analyseResult(stream, displayName(name))
	if err != nil {
		return r, err
	}
	claims := slices.DeleteFunc(findings.Published().Claims, func(c findings.Claim) bool { return c.Source != a.source.ID })
	r.Exact, r.Plan, r.Published, r.Result = exact, header.Plan, checked, found
	r.Figures, r.Claims = findings.Figures(mine, header, published), findings.Judge(mine, claims)
	return r, nil
}

// analyseResult reads a result once, and returns its header, its analysis and the report of check about it.
func (a *reproduction) analyseResult(s *external.Stream, name string) (result.Header, *compare.Analysis, check.Report, error) {
	var in compare.Collector
	v := check.New(s.Header)
	err := a.forEachRecord(s, false, func(rec *result.Record) error { return errors.Join(in.Add(rec), v.Add(*rec)) })
	if err != nil {
		return s.Header, nil, check.Report{}, err
	}
	found, err := v.Report(name, nil)
	if err != nil {
		return s.Header, nil, found, err
	}
	an, err := in.Analyse(s.Header, compare.Options{})
	return s.Header, an, found, err
}
