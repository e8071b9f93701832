package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// mostTransactions bounds how many transactions are followed: their events must fit into a buffer of the kernel.
const mostTransactions = 2000

type journeyArgs struct {
	plan         planArgs
	format       string
	events       string
	transactions int
	verbose      bool
	quiet        bool
}

const journeyLong = `Follow transactions through the lab and show where each packet is, when: sockets, netfilter hooks, BPF programs,
bridges, tunnels and devices of pods, nodes and switch, from the client's send to its response. Each profile becomes
one line over a common time axis. Probes cost time; the report says how much. Timed trials are another pass.`

const journeyExample = `  sudo cnibench journey flannel-vxlan canal cilium-native macvlan
  sudo cnibench journey calico-vxlan --paths pod-to-service/remote --workloads crr`

func (p *program) journeyCommand() *cobra.Command {
	var a journeyArgs
	cmd := &cobra.Command{
		Use: "journey PROFILE...", Short: "Show where a packet is, when", Long: journeyLong, Example: journeyExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(cmd, errors.New("no profile: name one or more (cnibench list profiles)"))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return profile.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.journey(cmd, &a, args) },
	}
	a.plan.declareSome(cmd, func(s plan.Setting) bool {
		return s.Group() == plan.GroupLab || slices.Contains([]string{"paths", "workloads", "duration"}, s.Flag)
	})
	f := cmd.Flags()
	f.IntVar(&a.transactions, "transactions", 400, fmt.Sprintf("`number` of transactions to follow on each path, at most %d", mostTransactions))
	a.format = "text"
	choose(cmd, &a.format, "format", "`format`", append(slices.Clone(documentNames), "svg"))
	f.StringVar(&a.events, "events", "", "also write every event to this `file`, as JSON")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "if the kernel refuses a BPF program, print its verifier's whole log to stderr")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	group(cmd, plan.GroupWhat, true, "transactions")
	group(cmd, groupOutput, true, "format", "events", "quiet", "verbose")
	grouped(cmd)
	return cmd
}

// want returns the plan that the flags and arguments mean. Every fault is reported, before anything is raised.
func (a *journeyArgs) want(cmd *cobra.Command, names []string) (plan.Plan, error) {
	want, err := a.plan.plan(cmd)
	if err != nil {
		return want, err
	}
	var faults plan.Faults
	fault := func(field, format string, args ...any) {
		faults = append(faults, plan.Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	want.Profiles = nil
	for _, name := range strings.Split(strings.Join(names, ","), ",") {
		v, err := plan.ParseVariant(name)
		switch {
		case err != nil:
			fault("PROFILE", "%v", err)
		case slices.Contains(want.Profiles, v):
			fault("PROFILE", "%s is named twice", v)
		default:
			want.Profiles = append(want.Profiles, v)
		}
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
	if a.transactions < 1 || a.transactions > mostTransactions {
		fault("--transactions", "%d: want 1 to %d", a.transactions, mostTransactions)
	}
	if a.format == "svg" && len(want.Paths)*len(want.Workloads) > 1 {
		fault("--format", "svg is one picture, of one path and one workload: want html for several")
	}
	var more plan.Faults
	if err := want.Validate(); err != nil && !errors.As(err, &more) {
		return want, err
	}
	if faults = append(faults, more...); len(faults) > 0 {
		return want, faults
	}
	return want, nil
}

func (p *program) journey(cmd *cobra.Command, a *journeyArgs, names []string) (err error) {
	want, err := a.want(cmd, names)
	if err != nil {
		return err
	}
	var events io.Writer = io.Discard
	if a.events != "" {
		file, err := os.Create(a.events)
		if err != nil {
			return usage(err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		events = file
	}
	s := p.newStory(a.verbose, a.quiet)
	page, err := p.followAll(cmd.Context(), want, a, s, events)
	s.clear()
	if err != nil {
		return err
	}
	if a.format == "svg" {
		pictures := figure.Journeys(page)
		if len(pictures) == 0 {
			return errors.New(strings.Join(each.Of(page.Left, report.Left.String), "\n"))
		}
		return chart.WriteSVG(p.stdout, chart.Framed(pictures[0]))
	}
	if err := p.write(a.format, report.BuildJourney(page)); err != nil {
		return err
	}
	if len(page.Journeys) == 0 {
		return failed(exitFailed)
	}
	return nil
}

// followAll raises the lab and follows every workload on every path of every profile.
func (p *program) followAll(ctx context.Context, want plan.Plan, a *journeyArgs, s *story, events io.Writer) (page report.JourneyPage, err error) {
	e, want, err := p.openEnvironment(ctx, want, s.step)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return page, err
	}
	defer func() { err = env.Close(ctx, e, err) }()
	if logs := e.Capabilities().VerifierLogs; logs != nil {
		printVerifierLogs(p.stderr, logs(), a.verbose)
	}
	if page.Facts, err = e.Facts(ctx); err != nil {
		return page, err
	}
	follow := e.Capabilities().Follow
	if follow == nil {
		return page, errors.New("transactions can be followed in the lab only")
	}
	profiles, err := e.Profiles(ctx)
	if err != nil {
		return page, err
	}
	page.Plan, page.Transactions = want, a.transactions
	encode := json.NewEncoder(events)
	for _, path := range want.Paths {
		for _, w := range want.Workloads {
			for _, v := range profiles {
				if v.Skipped != "" {
					page.Leave(v.Name, path, w, v.Skipped)
					continue
				}
				s.step("following %s on %s of %s", w, path, v.Name)
				t, err := follow(ctx, plan.Single(v.Name, path), journey.Options{Workload: w, Transactions: a.transactions, Warmup: want.Warmup, Window: want.Duration})
				if cause := context.Cause(ctx); cause != nil {
					return page, cause
				}
				var not *control.NotServedError
				if errors.As(err, &not) {
					page.Leave(v.Name, path, w, "not served: "+not.Reason)
					continue
				}
				if err != nil {
					return page, fmt.Errorf("%s, %s: %w", v.Name, path, err)
				}
				if err := encode.Encode(t); err != nil {
					return page, fmt.Errorf("write events: %w", err)
				}
				i, err := itinerary.Of(t)
				if err != nil {
					return page, err
				}
				page.Journeys = append(page.Journeys, i)
			}
		}
	}
	return page, nil
}
