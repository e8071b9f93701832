package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// leastTransactions and mostTransactions bound --transactions: enough for a median, and no more than fit into a kernel
// buffer.
const leastTransactions, mostTransactions = 20, 2000

// following is one invocation of journey: one pass over profiles, paths and workloads.
type following struct {
	*program
	plan         planArgs
	format       string
	events       string
	transactions int
	verbose      bool
	quiet        bool
	story        *story
	page         report.JourneyPage
	traces       []journey.Trace
	// failed joins the errors of profiles that serve the path but could not be followed; the others are reported anyway.
	failed error
}

const journeyLong = `Follow transactions through the lab and show where each packet is, when: sockets, netfilter hooks, BPF programs,
bridges, tunnels and devices of pods, nodes and switch, from the client's send to its response. Each profile becomes
one line over a common time axis. Probes cost time: it is measured in turn, and subtracted.`

const journeyExample = `  sudo cnibench journey flannel-vxlan canal cilium-native macvlan
  sudo cnibench journey calico-vxlan \
    --paths pod-to-service/remote --workloads crr`

func journeyCommand(p *program) *cobra.Command {
	f := following{program: p}
	cmd := &cobra.Command{
		Use: "journey PROFILE...", Short: "Show a packet's position over time", Long: journeyLong, Example: journeyExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return commandUsageError(cmd, errors.New("no profile: name one or more (cnibench list profiles)"))
			}
			return nil
		},
		ValidArgsFunction: argumentCompletion(profile.Names, cobra.ShellCompDirectiveNoFileComp),
		RunE:              f.run,
	}
	f.plan.declareSettings(cmd, func(s plan.Setting) bool {
		return s.Group() == plan.GroupLab || slices.Contains([]string{"paths", "workloads", "duration"}, s.Flag)
	})
	flags := cmd.Flags()
	flags.IntVar(&f.transactions, "transactions", 400, fmt.Sprintf("`number` of transactions to follow on each path, %d to %d", leastTransactions, mostTransactions))
	declareFormatFlag(cmd, &f.format, append(slices.Clone(documentNames), "svg"))
	flags.StringVar(&f.events, "events", "", "also write every event to this `file`, as JSON")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "if the kernel refuses a BPF program, print its verifier's whole log to stderr")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only errors to stderr")
	groupFlags(cmd, plan.GroupWhat, true, "transactions")
	groupFlags(cmd, groupOutput, true, "format", "events", "quiet", "verbose")
	return cmd
}

// buildPlan returns the plan that the flags and arguments describe. Its error lists all faults.
func (f *following) buildPlan(cmd *cobra.Command, names []string) (plan.Plan, error) {
	want, err := f.plan.buildPlan(cmd)
	if err != nil {
		return want, err
	}
	var faults position.Faults
	fault := func(field, format string, args ...any) {
		faults = append(faults, position.Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	profiles, _ := plan.SettingOf("profiles")
	if err := profiles.Set(&want, strings.Join(names, ",")); err != nil {
		fault("profiles", "%v", err)
	}
	want.Twin = false
	if len(want.Profiles) > 0 {
		want.Baseline = want.Profiles[0] // a plan has one; nothing is compared
	}
	if !cmd.Flags().Changed("paths") {
		want.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	}
	if !cmd.Flags().Changed("workloads") {
		want.Workloads = []plan.Workload{plan.Workload{Spec: plan.RR{}}.Normalize()}
	}
	if !cmd.Flags().Changed("duration") {
		want.Duration = time.Second
	}
	for _, w := range want.Workloads {
		if why := journey.Unfit(w); why != "" {
			fault("--workloads", "%s: %s", w, why)
		}
	}
	if f.transactions < leastTransactions || f.transactions > mostTransactions {
		fault("--transactions", "%d: want %d to %d", f.transactions, leastTransactions, mostTransactions)
	}
	if f.format == "svg" && len(want.Paths)*len(want.Workloads) > 1 {
		fault("--format", "svg is one picture, of one path and one workload: want html for several")
	}
	want, own := profilefile.Load(want, os.ReadFile)
	faults = append(faults, own...)
	var more position.Faults
	if err := want.Validate(); err != nil && !errors.As(err, &more) {
		return want, err
	}
	if faults = append(faults, more...); len(faults) > 0 {
		return want, faults
	}
	return want, nil
}

func (f *following) run(cmd *cobra.Command, names []string) error {
	want, err := f.buildPlan(cmd, names)
	if err != nil {
		return err
	}
	if f.events != "" {
		if _, err := os.Stat(filepath.Dir(f.events)); err != nil {
			return usageError(fmt.Errorf("write %s: %w", f.events, err))
		}
	}
	f.story = f.newStory(f.verbose, f.quiet)
	err = f.followPaths(cmd.Context(), want)
	f.story.eraseLines()
	if err != nil {
		return err
	}
	if err := f.writeEvents(); err != nil {
		return err
	}
	if len(f.page.Journeys) == 0 && f.failed != nil {
		return f.failed
	}
	if f.format == "svg" {
		if len(f.page.Journeys) == 0 {
			return errors.New(strings.Join(each.Of(f.page.Left, report.Left.String), "\n"))
		}
		err = plot.WriteSVG(f.stdout, plot.Framed(f.page.Figures()[0].Drawing))
	} else {
		err = f.writeDocument(f.format, report.BuildJourney(f.page))
	}
	switch {
	case err != nil:
		return err
	case f.failed != nil:
		return f.failed
	case len(f.page.Journeys) == 0:
		return quietError(exitFailed)
	}
	return nil
}

// followPaths raises the lab and follows every workload on every path of every profile.
func (f *following) followPaths(ctx context.Context, want plan.Plan) (err error) {
	e, want, err := f.openEnvironment(ctx, want, f.story.showStep)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer func() { err = env.Close(ctx, e, err) }()
	if lab, ok := e.At(want.Baseline).(env.Verifier); ok {
		printVerifierLogs(f.stderr, lab.VerifierLogs(), f.verbose)
	}
	lab, ok := e.At(want.Baseline).(env.Follower)
	if !ok {
		return errors.New("transactions can be followed in the lab only")
	}
	if f.page.Facts, err = e.Facts(ctx); err != nil {
		return err
	}
	profiles, err := e.Profiles(ctx)
	if err != nil {
		return err
	}
	f.page.Plan, f.page.Transactions = want, f.transactions
	for _, path := range want.Paths {
		for _, w := range want.Workloads {
			for _, v := range profiles {
				if v.Skipped != "" {
					f.page.Leave(v.Name, path, w, v.Skipped)
					continue
				}
				f.story.showStep("following %s on %s of %s", w, path, v.Name)
				o := journey.Options{Workload: w, Transactions: f.transactions, Warmup: want.Warmup, Window: want.Duration}
				t, err := lab.Follow(ctx, plan.Single(v.Name, path), o)
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				f.addTrace(t, err, report.Left{Profile: v.Name, Path: path, Workload: w})
			}
		}
	}
	return nil
}

// addTrace adds the trace t to f.traces and its journey to the page. If err is not nil, or t gives no journey, it adds
// left to the page instead, with the reason. It also adds the error to f.failed, unless the profile does not serve the
// path.
func (f *following) addTrace(t journey.Trace, err error, left report.Left) {
	var not *control.NotServedError
	if errors.As(err, &not) {
		left.Reason = "not served: " + not.Reason
		f.page.Left = append(f.page.Left, left)
		return
	}
	var i itinerary.Itinerary
	if err == nil {
		f.traces = append(f.traces, t)
		i, err = itinerary.Of(t)
	}
	if err != nil {
		left.Reason = oneLine(err.Error())
		f.page.Left = append(f.page.Left, left)
		f.failed = errors.Join(f.failed, fmt.Errorf("%s, %s, %s: %w", left.Profile, left.Path, left.Workload, err))
		return
	}
	f.page.Journeys = append(f.page.Journeys, i)
}

// writeEvents writes all events to the file of --events, one trace in a line. Without --events it does nothing.
func (f *following) writeEvents() error {
	if f.events == "" {
		return nil
	}
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	for _, t := range f.traces {
		if err := encode.Encode(t); err != nil {
			return fmt.Errorf("write %s: %w", f.events, err)
		}
	}
	return os.WriteFile(f.events, b.Bytes(), 0o666)
}
