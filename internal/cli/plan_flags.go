package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/env/kind"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// planFlags returns the flags of a plan: the settings with a flag, and --load and --tool, which change all workloads. They
// are applied to the plan file or preset in this order, so that --load and --tool follow --workloads.
var planFlags = sync.OnceValue(allPlanFlags)

func allPlanFlags() []plan.Setting {
	var all []plan.Setting
	for _, s := range plan.Settings() {
		if s.Flag == "" {
			continue
		}
		all = append(all, s)
		if s.Key == "workloads" {
			all = append(all, plan.Setting{Key: s.Key, Flag: "load", Set: setLoads,
				Help: "`shares` of the capacity, such as 10%..95% or 50%: each rr, crr and http runs in an open loop once per share"})
		}
	}
	return append(all, plan.Setting{Key: "workloads", Flag: toolFlag, Words: plan.ToolNames(),
		Help: "`programs` that send the workloads too, beside our engine: " + strings.Join(plan.ToolNames(), ", ")})
}

func setLoads(p *plan.Plan, s string) error {
	loaded, err := plan.WithLoads(p.Workloads, s)
	if err == nil {
		p.Workloads = loaded
	}
	return err
}

// toolFlag is the flag that adds a copy of each workload for each tool. It is applied after all other flags of a plan.
const toolFlag = "tool"

// planArgs are the flags that say what is measured.
type planArgs struct {
	file, preset string
	noTwin       bool
	texts        map[string]*string
	// drawn is true if the seed was drawn at random, because none was given.
	drawn bool
	// left lists what is omitted from the plan: workloads that the tools cannot send, conditions that clusters do not
	// support.
	left []string
	// labToo is true if the plan is for clusters and also for the lab.
	labToo bool
	// article is the article's plan that the flags of reproduce change; nil for other commands.
	article *articlePlan
	// was is the plan of a resumed result file, if the flags change it; nil otherwise.
	was *plan.Plan
}

// completionWords returns the words that the shell completes for a flag, nil for none.
func completionWords(f plan.Setting) []string {
	switch f.Flag {
	case "profiles", "baseline":
		return profile.Names()
	case "paths":
		return append(plan.Texts(plan.Paths), "all")
	case "workloads":
		return plan.Texts(plan.Kinds())
	}
	if f.Switch {
		return nil
	}
	return f.Words
}

func fixedWords(words ...string) func() []string { return func() []string { return words } }

// declareFlags adds all flags that shape a plan to cmd.
func (a *planArgs) declareFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.file, "file", "", "plan `file` (examples/*.yaml)")
	a.preset = plan.Presets[0]
	declareChoiceFlag(cmd, &a.preset, "preset", "`plan` to start from without a file (quick: within a minute; standard: 4 minutes; thorough: half an hour)", plan.Presets)
	f.BoolVar(&a.noTwin, "no-twin", false, "do not measure the baseline a second time")
	cmd.MarkFlagsMutuallyExclusive("file", "preset")
	a.declareSettings(cmd, func(plan.Setting) bool { return true })
	groupFlags(cmd, plan.GroupWhat, true, "file", "preset")
	groupFlags(cmd, plan.GroupTime, false, "no-twin")
}

// declareSettings adds the flags of some settings to cmd.
func (a *planArgs) declareSettings(cmd *cobra.Command, wanted func(plan.Setting) bool) {
	a.texts = map[string]*string{}
	for _, p := range planFlags() {
		if !wanted(p) {
			continue
		}
		a.texts[p.Flag] = cmd.Flags().String(p.Flag, "", p.Help)
		if p.Switch {
			f := cmd.Flags().Lookup(p.Flag)
			f.DefValue, f.NoOptDefVal, f.Value = "false", "true", switchValue{f.Value}
		}
		groupFlags(cmd, p.Group(), p.Common, p.Flag)
		if words := completionWords(p); words != nil {
			completeFlag(cmd, p.Flag, fixedWords(words...))
		}
	}
}

// declareMarginFlag adds the flag --margin to a command that reads results. Without the flag, *to stays 0.
func declareMarginFlag(cmd *cobra.Command, to *float64) {
	s, _ := plan.SettingOf("margin")
	cmd.Flags().Func(s.Flag, s.Help+" (default: the plan's)", func(text string) error {
		var p plan.Plan
		err := s.Set(&p, text)
		*to = p.Margin
		return err
	})
}

// switchValue is a text value of a flag that needs no argument, like a bool.
type switchValue struct{ pflag.Value }

// Type returns "bool", so that help shows no value.
func (switchValue) Type() string { return "bool" }

// flagsGiven reports whether the user gave any flag that changes the plan.
func (a *planArgs) flagsGiven(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"file", "preset", "no-twin"}, cmd.Flags().Changed) ||
		slices.ContainsFunc(planFlags(), func(p plan.Setting) bool { return cmd.Flags().Changed(p.Flag) })
}

// sweepBudget is the budget of a sweep if neither a flag nor a file sets one.
const sweepBudget = 9 * time.Minute

// buildPlan returns the valid plan that the flags ask for. If the flags or the plan file are wrong, the error is a
// position.Faults with all faults. It also fails if the plan file cannot be opened.
func (a *planArgs) buildPlan(cmd *cobra.Command) (plan.Plan, error) {
	p, file, err := a.basePlan(cmd)
	if err != nil {
		return p, err
	}
	faults := file.Faults()
	changed := map[string]string{}
	for _, f := range planFlags() {
		if !cmd.Flags().Changed(f.Flag) {
			continue
		}
		if changed[f.Key] == "" {
			changed[f.Key] = "--" + f.Flag // the first contributes most of it
		}
		set := f.Set
		if f.Flag == toolFlag {
			set = a.setTools
		}
		if err := set(&p, *a.texts[f.Flag]); err != nil {
			faults = append(faults, position.Fault{Field: "--" + f.Flag, Message: err.Error()})
		}
	}
	if a.noTwin {
		p.Twin = false
	}
	// An explicit duration clears the preset's budget.
	if a.file == "" && a.was == nil && changed["duration"] != "" && changed["budget"] == "" {
		p.Budget = 0
	}
	if a.file == "" && a.was == nil && !p.Sweep.IsZero() && changed["budget"] == "" && changed["duration"] == "" {
		p.Budget = max(p.Budget, sweepBudget)
	}
	if a.was != nil && changed["repetitions"] != "" && changed["maxRepetitions"] == "" && p.MaxRepetitions > 0 {
		p.MaxRepetitions = max(p.MaxRepetitions, p.Repetitions)
	}
	if !cmd.Flags().Changed("seed") && p.Seed == 0 && a.was == nil {
		p.Seed, a.drawn = rand.Uint64N(1_000_000_000), true
	}
	if a.article != nil {
		notes, err := a.article.completePlan(&p, changed)
		if err != nil {
			return p, usageError(err)
		}
		a.left = append(a.left, notes...)
	} else if a.file == "" && a.was == nil && p.OnCluster() && changed["warmup"] == "" {
		p.Warmup = plan.ClusterWarmup
	}
	if a.file == "" && a.was == nil && a.article == nil {
		p = p.ForPairs(func(key string) bool { return changed[key] != "" })
	}
	var listed position.Faults
	p.Pairs, listed = p.Pairs.Load(os.ReadFile)
	p, own := profilefile.Load(p, os.ReadFile)
	p = p.Settle()
	faults = slices.Concat(faults, listed, own, a.misplacedFlags(cmd, p))
	if err := joinFaults(faults, file.Place(p.Validate()), changed); err != nil {
		return p, err
	}
	if p.Environment == plan.EnvKind {
		if err := kind.CheckPlan(p); err != nil {
			wayOut := "make a cluster with what it needs (cnibench cni install --help); measure it by --env kubernetes"
			return p, usageError(advice.With(err, wayOut))
		}
	}
	if p.OnCluster() && !a.labToo {
		var idle []string
		if p, idle = p.WithoutLab(); idle != nil {
			a.left = append(a.left, strings.Join(idle, ", ")+" of the plan: for the lab only; the cluster is measured as it stands")
		}
	}
	if a.file == "" && a.was == nil && changed["repetitions"] == "" && changed["maxRepetitions"] == "" {
		p = p.FitRepetitions()
	}
	return p, nil
}

// resumedPlan returns the plan for resuming a result file. was is the plan in that file. It returns the plan of the flags
// alone if it equals or extends was, or if --file or --preset is given. Otherwise it applies the flags to was, which may be what
// makes them valid.
func (a *planArgs) resumedPlan(cmd *cobra.Command, was plan.Plan) (plan.Plan, error) {
	want, err := a.buildPlan(cmd)
	given := a.file != "" || cmd.Flags().Changed("preset")
	if err != nil && given {
		return want, err
	}
	// The first invocation chose these by itself.
	if want.Duration == 0 {
		want.Duration = was.Duration
	}
	if a.drawn {
		want.Seed = was.Seed
	}
	if err == nil && (was.Differ(want) == nil || extendsPlan(was, want) || given) {
		return want, nil
	}
	a.was, a.left = &was, nil // the notes are made again
	return a.buildPlan(cmd)
}

// setTools adds a copy of each workload for every tool that can send it. It sets a.left to what the tools cannot send.
func (a *planArgs) setTools(p *plan.Plan, s string) (err error) {
	p.Workloads, a.left, err = plan.WithTools(p.Workloads, strings.Split(strings.ReplaceAll(s, " ", ""), ","))
	return err
}

// basePlan returns the plan that the flags are applied to, and the decoder of the file that it was read from.
func (a *planArgs) basePlan(cmd *cobra.Command) (plan.Plan, position.Decoder, error) {
	if a.was != nil {
		return *a.was, position.Decoder{}, nil
	}
	environment := ""
	if cmd.Flags().Changed("env") {
		environment = *a.texts["env"]
	}
	switch {
	case a.article != nil:
		return a.article.startingPlan(environment)
	case a.file == "":
		return plan.Preset(a.preset), position.Decoder{}, nil
	}
	f, err := os.Open(a.file)
	if err != nil {
		return plan.Plan{}, position.Decoder{}, usageError(fmt.Errorf("open plan: %w", err))
	}
	defer f.Close() // it was only read
	p, file, err := plan.Read(a.file, f, environment)
	return p, file, usageError(err)
}

// joinFaults returns the sorted faults of both lists, nil if there are none. unread are faults of the plan file and of
// flags that cannot be parsed. whole are faults of the resulting plan. changed maps a field to the flag that set it:
// faults of whole name that flag instead of the field. They are left out if unread has a fault of that flag.
func joinFaults(unread, whole position.Faults, changed map[string]string) error {
	spoiled := map[string]bool{}
	for _, f := range unread {
		spoiled[f.Field] = f.Field != ""
	}
	for _, f := range whole {
		if flag := changed[f.Field]; flag != "" {
			f.File, f.Line, f.Field = "", 0, flag
		}
		if !spoiled[f.Field] {
			unread = append(unread, f)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	unread.Sort()
	return unread
}

// chartsFlag is the flag that says where a run finds the charts that it installs.
const chartsFlag = "charts"

// misplacedFlags returns a fault for each flag that has no effect in the plan's environment, such as --delay on a cluster.
// Settings in a plan file are not faults: a file may have settings for several environments.
func (a *planArgs) misplacedFlags(cmd *cobra.Command, p plan.Plan) position.Faults {
	var faults position.Faults
	refuse := func(why string, names ...string) {
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				faults = append(faults, position.Fault{Field: "--" + name, Message: why})
			}
		}
	}
	switch {
	case p.Environment == "" || p.Environment == plan.EnvLab:
		refuse("is for a cluster, and this plan measures the lab: add --env kubernetes",
			append([]string{"kubeconfig", chartsFlag}, flagNames(plan.Setting.OnClusters)...)...)
	case p.OnCluster() && !a.labToo:
		refuse("is for the lab, and a cluster is measured as it is: leave it out, or add --env lab", flagNames(plan.Setting.InLab)...)
	}
	if p.Environment == plan.EnvKind {
		refuse("is for an existing cluster, and --env kind makes its own: leave it out, or take --env kubernetes", "kubeconfig", "context")
	}
	if p.Environment == plan.EnvKubernetes && !p.Cluster.Install {
		refuse("says where to install from, and this plan installs nothing: add --install, or leave it out", chartsFlag)
	}
	return faults
}

// flagNames returns the names of the flags of each setting s for which is(s) is true.
func flagNames(is func(plan.Setting) bool) []string {
	return each.Of(each.Where(planFlags(), is), func(f plan.Setting) string { return f.Flag })
}
