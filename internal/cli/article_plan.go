package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/examples"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// articlePlan is the plan that reproduce starts from: the article's plan, unchanged or shortened to fit firstLook.
type articlePlan struct {
	// name is the name of the plan file.
	name string
	// exact keeps windows, repetitions, tools and order as in the article. own replaces the article's tools with the
	// engine.
	exact, own bool
}

// firstLook is the default budget of reproduce without --exact.
const firstLook = 5 * time.Minute

// startingPlan returns the article's plan for an environment; "" means the environment that the plan file names. Without
// exact, it shortens the plan to fit firstLook: short windows, our default number of repetitions, interleaved trials, and a
// twin of the baseline. It fails if the plan cannot be read.
func (a *articlePlan) startingPlan(environment string) (plan.Plan, position.Decoder, error) {
	name := "exact/" + a.name + ".yaml"
	text, err := examples.Articles.ReadFile(name)
	if err != nil {
		return plan.Plan{}, position.Decoder{}, err
	}
	p, file, err := plan.Read("examples/"+name, bytes.NewReader(text), environment)
	if err != nil || a.exact {
		return p, file, err
	}
	p.Sequential, p.Twin, p.Duration, p.Warmup = false, true, 0, 0
	p.Repetitions, p.Budget = plan.Default().Repetitions, firstLook
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Window = 2 * w.Traits().Interval // at least one echo falls into it
	}
	return p, file, nil
}

// completePlan completes p after the flags are applied, and returns the notes of chooseTools. Without exact, it sets
// the default warm-up if no tool remains and no flag set the warm-up. changed maps the key of each setting that a flag
// set to that flag.
func (a *articlePlan) completePlan(p *plan.Plan, changed map[string]string) ([]string, error) {
	notes, err := a.chooseTools(p)
	if tooled := slices.ContainsFunc(p.Workloads, func(w plan.Workload) bool { return w.Tool != "" }); !a.exact && !tooled && changed["warmup"] == "" {
		p.Warmup = plan.Default().Warmup
		if p.OnCluster() {
			p.Warmup = plan.ClusterWarmup
		}
	}
	return notes, err
}

// chooseTools replaces tools by the engine and returns notes with the reasons. It replaces all tools for --own, on
// clusters, and if windows of whole seconds do not fit the budget. Otherwise it replaces the tools that are not
// installed. With exact it replaces no tool, and in the lab it fails if a tool is not installed.
func (a *articlePlan) chooseTools(p *plan.Plan) ([]string, error) {
	asked := p.Tools()
	switch {
	case len(asked) == 0:
		return nil, nil
	case a.own:
		return []string{a.replaceTools(p, asked, "--own")}, nil
	case p.OnCluster() && a.exact: // the run finds out whether the pods' image has the tools
		return nil, nil
	case p.OnCluster():
		return []string{a.replaceTools(p, asked, "a first look on a cluster needs no image with tools; --exact takes them")}, nil
	}
	if missing := missingTools(*p); len(missing) > 0 {
		if a.exact {
			return nil, advice.With(fmt.Errorf("--exact: not installed here: %s", strings.Join(missing, ", ")),
				"install what is missing, or leave out --exact: then the engine of cnibench sends instead")
		}
		notes := []string{a.replaceTools(p, missing, "not installed here")}
		more, err := a.chooseTools(p)
		return append(notes, more...), err
	}
	if !a.exact && p.Budget > 0 && p.Duration == 0 {
		cases := len(p.Cases())
		fit := p.FitRepetitions().Fit(cases)
		if need := fit.Expected(cases); need > p.Budget {
			why := fmt.Sprintf("%d repetitions in whole seconds need %s, more than the budget of %s; --exact or --budget %[2]s takes them",
				fit.Repetitions, need.Round(time.Minute)+time.Minute, p.Budget)
			return []string{a.replaceTools(p, asked, why)}, nil
		}
	}
	return nil, nil
}

// missingTools returns the tools of a plan with a program that is not installed here.
func missingTools(p plan.Plan) []string {
	var missing []string
	for _, w := range p.Workloads {
		if w.Tool == "" || slices.Contains(missing, w.Tool) {
			continue
		}
		programs := external.Programs(w)
		if slices.ContainsFunc(programs, func(name string) bool { _, err := external.Find(w.Tool, name); return err != nil }) {
			missing = append(missing, w.Tool)
		}
	}
	return missing
}

// replaceTools removes tools from the workloads of p, so that the engine sends them. It returns a note with the reason why.
func (a *articlePlan) replaceTools(p *plan.Plan, tools []string, why string) string {
	p.Workloads = each.Once(each.Of(p.Workloads, func(w plan.Workload) plan.Workload {
		if slices.Contains(tools, w.Tool) {
			w.Tool = ""
		}
		return w
	}))
	return fmt.Sprintf("the engine of cnibench sends in place of %s: %s", strings.Join(tools, ", "), why)
}
