package cli

import (
	"bytes"
	"errors"
	"fmt"
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

// reproduceArgs are the flags of the command reproduce.
type reproduceArgs struct {
	run            runArgs
	result, claims string
	failOn         []string
	source         findings.Source
}

func (p *program) reproduceCommand() *cobra.Command {
	var a reproduceArgs
	var article articlePlan
	cmd := &cobra.Command{
		Use: "reproduce [ARTICLE]", Short: "Repeat a published comparison, its numbers beside yours", Long: reproduceLong, Args: takes(0, 1, "one article or none"),
		Example:           "  sudo cnibench reproduce rke2\n  cnibench reproduce --result result.jsonl",
		ValidArgsFunction: arguments(func() []string { return sourceIDs(findings.Published()) }, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case a.claims != "" && (len(args) > 0 || a.result == ""):
				return usageOf(cmd, errors.New("--claims judges a file by claims of your own: add --result FILE, leave out the article"))
			case len(args) == 0 && a.result == "":
				return p.listArticles()
			case len(args) == 0:
				return p.reproduce(cmd, &a)
			}
			source, err := sourceCalled(args[0])
			if err != nil {
				return usage(err)
			}
			a.source, article.name = source, source.Plan
			return p.reproduce(cmd, &a)
		},
	}
	r := &a.run
	r.plan.article = &article
	// The user may change what is measured, for how long, and on which nodes. The conditions are the article's.
	r.plan.declareSome(cmd, func(s plan.Setting) bool {
		return s.Group() != plan.GroupLab && !slices.Contains(chosenByArticle, s.Flag)
	})
	f := cmd.Flags()
	f.BoolVar(&article.exact, "exact", false, "windows, repetitions, tools and order of the article")
	f.BoolVar(&article.own, "own", false, "send with the engine of cnibench alone, not with the article's tools")
	f.StringVar(&a.result, "result", "", "judge this result `file` and measure nothing")
	f.StringVar(&a.claims, "claims", "", "with --result: `file` of claims in place of the published ones")
	f.StringSliceVar(&a.failOn, "fail-on", nil, "`outcomes` that fail the command: contradicted, inconclusive")
	f.StringVarP(&r.output, "output", "o", "", "result `file` (default ARTICLE.jsonl)")
	formatFlag(cmd, &r.format, documentNames)
	f.BoolVar(&r.all, "all", false, allUsage)
	f.BoolVar(&r.dryRun, "dry-run", false, "say what would be measured and how long it would take, and measure nothing")
	f.BoolVar(&r.force, "force", false, "replace the result file if there is one")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "print a line for each trial to stderr")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print only errors to stderr")
	f.StringVar(&p.charts, chartsFlag, "", "`directory` or file of charts and manifests for --install and --env kind")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	cmd.MarkFlagsMutuallyExclusive("exact", "own")
	cmd.MarkFlagsMutuallyExclusive("verbose", "quiet")
	group(cmd, plan.GroupWhat, true, "exact", "own")
	group(cmd, groupOutput, true, "output", "result", "fail-on", "format", "dry-run", "quiet")
	group(cmd, groupOutput, false, "claims", "all", "force", "verbose")
	group(cmd, plan.GroupCluster, false, "kubeconfig", chartsFlag)
	return cmd
}

// chosenByArticle are the settings that an article's plan chooses in addition to the conditions of the lab.
var chosenByArticle = []string{toolFlag, "load", "pairs", "concurrency", "flows", "message", "session-affinity", "service-annotations", "backend-cpu-limit"}

func sourceIDs(c findings.Claims) []string {
	return each.Of(c.Sources, func(s findings.Source) string { return s.ID })
}

// sourceCalled returns the article of this id or plan.
func sourceCalled(name string) (findings.Source, error) {
	all := findings.Published()
	i := slices.IndexFunc(all.Sources, func(s findings.Source) bool { return s.ID == name || s.Plan == name })
	if i < 0 {
		ids := sourceIDs(all)
		return findings.Source{}, fmt.Errorf("there is no article %q%s: there are %s", name, advice.DidYouMean(name, ids), strings.Join(ids, ", "))
	}
	return all.Sources[i], nil
}

// listArticles prints the articles.
func (p *program) listArticles() error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, s := range findings.Published().Sources {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.ID, s.Date, s.Title)
	}
	return w.Flush()
}

func (p *program) reproduce(cmd *cobra.Command, a *reproduceArgs) error {
	for _, o := range a.failOn {
		if o != string(findings.Contradicted) && o != string(findings.Inconclusive) {
			return usageOf(cmd, fmt.Errorf("--fail-on %q: want contradicted, inconclusive", o))
		}
	}
	if a.result != "" {
		if a.run.plan.said(cmd) || a.run.dryRun || cmd.Flags().Changed("output") {
			return usageOf(cmd, errors.New("--result judges a file; leave the flags of a run out"))
		}
		return p.printReproduction(a, a.result)
	}
	if a.run.output == "" {
		a.run.output = a.source.ID + ".jsonl"
	}
	a.run.show = func() error { return p.printReproduction(a, a.run.output) }
	return p.run(cmd, &a.run)
}

// printReproduction judges the result file called name by the article's claims, or by all claims without an article,
// and prints the verdicts.
func (p *program) printReproduction(a *reproduceArgs, name string) error {
	judge := p.claimsOf
	if a.source.ID != "" {
		judge = p.articleOf
	}
	d, outcomes, err := judge(a, name)
	if err != nil {
		return usage(err)
	}
	format := a.run.format
	if a.run.all && format == "text" {
		format = allText
	}
	if err := p.write(format, d); err != nil {
		return err
	}
	came := func(o findings.Outcome) bool {
		return slices.Contains(a.failOn, string(o)) && slices.Contains(outcomes, o)
	}
	switch {
	case came(findings.Contradicted):
		return failed(exitWorse)
	case came(findings.Inconclusive):
		return failed(exitInconclusive)
	}
	return nil
}

// became returns the outcome of a claim.
func became(j findings.Judged) findings.Outcome { return j.Outcome }

// claimsOf judges published claims, or the claims of a file, by the result file called name.
func (p *program) claimsOf(a *reproduceArgs, name string) (report.Document, []findings.Outcome, error) {
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
	side, err := p.side(name, 0)
	if err != nil {
		return report.Document{}, nil, err
	}
	judged := findings.Judge(side.Analysis, claims.Claims)
	return report.BuildFindings(claims.Sources, judged), each.Of(judged, became), nil
}

// articleOf compares the article with the result file called name.
func (p *program) articleOf(a *reproduceArgs, name string) (report.Document, []findings.Outcome, error) {
	r, err := p.reproductionOf(a.source, name)
	if err != nil {
		return report.Document{}, nil, err
	}
	of := each.Of(r.Figures, func(f findings.Figure) findings.Outcome { return f.Outcome })
	return report.BuildReproduction(r), append(of, each.Of(r.Claims, became)...), nil
}

// reproductionOf compares an article with the result file called name.
func (p *program) reproductionOf(source findings.Source, name string) (report.Reproduction, error) {
	r := report.Reproduction{Source: source}
	exact, _, err := (&articlePlan{name: source.Plan, exact: true}).begin("")
	if err != nil {
		return r, err
	}
	file := "published/" + source.Plan + ".csv"
	text, err := examples.Articles.ReadFile(file)
	if err != nil {
		return r, err
	}
	stream, err := external.NewStream(bytes.NewReader(text), file)
	if err != nil {
		return r, err
	}
	_, published, checked, err := p.examine(stream, "examples/"+file)
	if err != nil {
		return r, err
	}
	if stream, err = p.open(name); err != nil {
		return r, err
	}
	header, mine, found, err := p.examine(stream, called(name))
	if err != nil {
		return r, err
	}
	claims := slices.DeleteFunc(findings.Published().Claims, func(c findings.Claim) bool { return c.Source != source.ID })
	r.Exact, r.Plan, r.Published, r.Result = exact, header.Plan, checked, found
	r.Figures, r.Claims = findings.Figures(mine, header, published), findings.Judge(mine, claims)
	return r, nil
}

// examine reads a result once. It returns its cells, and what check finds in it.
func (p *program) examine(s *external.Stream, name string) (result.Header, *compare.Analysis, check.Report, error) {
	var in compare.Collector
	v := check.New(s.Header)
	err := p.each(s, false, func(rec *result.Record) error { return errors.Join(in.Add(rec), v.Add(*rec)) })
	if err != nil {
		return s.Header, nil, check.Report{}, err
	}
	found, err := v.Report(name, nil)
	if err != nil {
		return s.Header, nil, found, err
	}
	a, err := in.Analyse(s.Header, compare.Options{})
	return s.Header, a, found, err
}
