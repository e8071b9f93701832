package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/judge/diagnose"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const diagnoseLong = `Answer "is it the CNI?" in at most two minutes. It measures the path between two nodes, between two pods of them and
through a Service, in turn, and looks at the counters of the nodes and pods. The first line is the answer. Then it says how sure it is,
what to do next, what was measured, and what was ruled out.

It measures a lab of "cnibench lab up", a cluster (--context, --env kubernetes), or a lab that it raises itself (--profiles).
Nothing is changed beyond the run's own namespace. Name what is suspected by --from and --to. Of a cluster's Service, each pod that is
ready is tried, too: 20 connections, without data.

Exit code: 0 the network is fine, 3 a fault is named, 4 undecided.`

const diagnoseExample = `  cnibench diagnose --context prod --to shop/cart
  sudo cnibench diagnose --from node-1/pod-2 --to node-2/pod-1`

// Workloads of a diagnosis, the cheapest first, and limits of its times.
const (
	diagnoseWorkloads = "ping,rr,dns(rate=200,timeout=1s),crr(rate=1000),stream,stream(reverse=true),stream(protocol=udp,rate=5M,message=64)"
	// diagnoseResolver is measured on clusters, which have their own resolver.
	diagnoseResolver = ",dns(server=cluster,rate=100,timeout=1s)"
	// diagnoseBudget limits the examination and the trials after it. diagnoseLeast is the least time for the trials if
	// the examination takes long: a path that a policy closes never answers.
	diagnoseBudget, diagnoseLeast = 55 * time.Second, 25 * time.Second
	// longTrip is the round-trip time above which a trial would have too few round trips.
	longTrip = 120 * time.Millisecond
)

// Limits, so that a diagnosis takes at most two minutes. Limits called End count from the start of the diagnosis. After
// messageEnd, the diagnosis reads counters and removes its pods.
const (
	// settleTime limits the wait for a first connection on each path.
	settleTime = 45 * time.Second
	// openEnd limits opening the environment, until pods run and paths have settled.
	openEnd = 65 * time.Second
	// sizesEnd limits trying packet sizes.
	sizesEnd = 75 * time.Second
	// trialsEnd limits the trials.
	trialsEnd = 85 * time.Second
	// messageEnd limits comparing messages.
	messageEnd = 100 * time.Second
)

// countedOpening returns how much of the time that opening took counts against the limits above: at most openEnd. A
// longer wait, such as for an image, would leave no time to measure.
func countedOpening(opening time.Duration) time.Duration { return min(opening, openEnd) }

// trialsLimit returns when the trials must end. before is when they begin. Both are times since the start of the
// diagnosis. The end is diagnoseBudget, or before+diagnoseLeast if that is later, but at most trialsEnd.
func trialsLimit(before time.Duration) time.Duration {
	return min(max(diagnoseBudget, before+diagnoseLeast), trialsEnd)
}

// nearWorkloads are left out if round trips take longer than longTrip, or if a path does not answer.
var nearWorkloads = []string{"ping", "stream", "stream(reverse)"}

// diagnosis is one invocation of diagnose.
type diagnosis struct {
	*program
	what   planArgs
	lab    string
	from   string
	to     string
	format string
	output string
	quiet  bool
	// explain is true if the answer is followed by an explanation of where CPU time is spent.
	explain bool
	// named is the Service or pod that --to names; nil if it names none.
	named *diagnose.Named
}

// diagnoseCommand returns the command diagnose.
func diagnoseCommand(p *program) *cobra.Command {
	a := diagnosis{program: p}
	cmd := &cobra.Command{
		Use: "diagnose", Short: "Answer the question \"is it the CNI?\"", Long: diagnoseLong, Example: diagnoseExample, Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	a.what.declareSettings(cmd, func(s plan.Setting) bool {
		return s.Group() == plan.GroupLab || s.Group() == plan.GroupCluster || slices.Contains(diagnoseSettings, s.Key)
	})
	declareFormatFlag(cmd, &a.format, documentNames)
	f := cmd.Flags()
	f.StringVar(&a.lab, "lab", "", "`name` of the lab of lab up, if several are up")
	f.StringVar(&a.from, "from", "", "`place` where the paths begin: a node or pod (NAMESPACE/POD, in a lab NODE/POD)")
	f.StringVar(&a.to, "to", "", "`place` where they end: a node or pod or Service (NAMESPACE/NAME, :PORT for one of its ports) on another node")
	f.StringVarP(&a.output, "output", "o", "", "keep the trials in `file`; default none")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster; default as for kubectl")
	f.Lookup("explain").Usage = "sample where the CPU time of a request is spent: on the slow side, after the answer, in at most a minute"
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	groupFlags(cmd, groupOutput, true, "output", "format", "quiet")
	groupFlags(cmd, plan.GroupCluster, true, "kubeconfig")
	groupFlags(cmd, plan.GroupLab, true, "lab")
	groupFlags(cmd, plan.GroupWhat, true, "from", "to", "explain")
	hideFlags(cmd, "paths", "workloads", "repetitions", "duration", "warmup", "budget", "baseline", "load", toolFlag, "churn", "plant")
	return cmd
}

// diagnoseSettings are the settings that a diagnosis uses besides those of the lab and of clusters. It sets most of them
// itself.
var diagnoseSettings = []string{"environment", "profiles", "paths", "workloads", "repetitions", "duration", "warmup", "budget", "baseline", "seed", "explain"}

// run measures, judges, and prints the answer. It returns nil if the network is fine, and otherwise an error with the
// exit code of the verdict.
func (a *diagnosis) run(cmd *cobra.Command) error {
	p := a.program
	want, lab, err := a.buildPlan(cmd)
	if err != nil {
		return err
	}
	name, remove, err := resultFile(a.output)
	if err != nil {
		return err
	}
	defer remove()
	out, err := createResult(name, false)
	if err != nil {
		return err
	}
	p.shared, p.settle = true, settleTime
	wanted := want // without what is found
	var evidence diagnose.Evidence
	began := time.Now()
	open := func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error) {
		e, found, err := a.openLabOrCluster(ctx, want, lab, say)
		if err != nil {
			return nil, found, err
		}
		if cni, ok := profile.Lookup(found.Profiles[0].Profile()); ok {
			evidence.Encapsulation = cni.Encapsulation
		}
		x := examination{start: time.Now().Add(-countedOpening(time.Since(began))), named: a.named, evidence: &evidence, say: say}
		e, met := x.observePaths(ctx, e, found)
		want = fitPlan(found, met)
		want.Budget = x.start.Sub(began) + trialsLimit(time.Since(x.start))
		return e, want, nil
	}
	end, err := p.measurePlan(cmd.Context(), open, out, run.Options{Began: began}, p.newStory(false, a.quiet))
	switch {
	case end.Reason == result.Interrupted:
		return &exitError{code: exitInterrupted, err: errors.Join(errors.New("interrupted; nothing is diagnosed"), err)}
	case end.Reason == "":
		return err
	}
	if err != nil {
		return err
	}
	trials, err := p.openResult(name)
	if err == nil {
		evidence.Refused = trials.Header.Profiles[0].NotServed
		err = p.forEachRecord(trials, true, evidence.Add)
	}
	if err != nil {
		return err
	}
	answer := diagnose.Judge(&evidence)
	answer.Profile = want.Profiles[0].String()
	var x *report.Explanation
	var lost error // the answer stands without an explanation
	if a.explain {
		if x, lost = a.sampleRequests(cmd, wanted, lab, answer.Verdict); lost != nil {
			x = &report.Explanation{A: want.Profiles[0], B: want.Profiles[0], Without: []string{lost.Error()}}
		}
	}
	if err := p.writeDocument(a.format, report.BuildDiagnosis(answer, x)); err != nil {
		return err
	}
	if lost != nil && cmd.Context().Err() != nil { // interrupted
		return lost
	}
	switch answer.Verdict {
	case diagnose.Fine:
		return nil
	case diagnose.Undecided:
		return quietError(exitInconclusive)
	}
	return quietError(exitWorse)
}

// sampleRequests measures requests on two paths with CPU samples, and explains the difference. It compares pods with
// the Service if the verdict is Service, and otherwise hosts with pods.
func (a *diagnosis) sampleRequests(cmd *cobra.Command, want plan.Plan, lab string, v diagnose.Verdict) (*report.Explanation, error) {
	from, to := diagnose.HostPath, diagnose.PodPath
	if v == diagnose.Service {
		from, to = diagnose.PodPath, diagnose.ServicePath
	}
	want.Explain, want.Paths, want.Workloads = true, []plan.Path{from, to}, []plan.Workload{plan.Workload{Spec: plan.RR{}}.Normalize()}
	want.Duration, want.Repetitions, want.Budget = explainWindow, explainRepetitions, explainBudget
	a.shared = false
	open := func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error) {
		return a.openLabOrCluster(ctx, want, lab, say)
	}
	name, remove, err := resultFile("")
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := a.sampleToFile(cmd.Context(), open, name, a.quiet); err != nil {
		return nil, err
	}
	_, an, sides, err := a.readSampled(name, false)
	if err != nil {
		return nil, err
	}
	return new(report.ExplainPaths(an, sides, from, to)), nil
}

// explainWindow is the window of a trial of sampleRequests.
const explainWindow = 300 * time.Millisecond

// buildPlan returns the plan of a diagnosis, and the name of the running lab to diagnose, "" for another environment. It
// sets the flags that users cannot choose here, such as paths and workloads.
func (a *diagnosis) buildPlan(cmd *cobra.Command) (plan.Plan, string, error) {
	lab := a.lab
	if lab == "" && !cmd.Flags().Changed("env") && !cmd.Flags().Changed("profiles") && !cmd.Flags().Changed("context") && a.kubeconfig == "" {
		var err error
		if lab, err = chooseLab(""); err != nil {
			return plan.Plan{}, "", advice.With(err, "name a cluster by --context, or --env kubernetes for kubectl's own; or start a lab: cnibench lab up calico-vxlan")
		}
	}
	set := func(flag, value string) error { return cmd.Flags().Set(flag, value) }
	var errs []error
	if lab != "" {
		v, err := labVariant(lab)
		if err != nil {
			return plan.Plan{}, "", err
		}
		errs = append(errs, set("profiles", v.String()))
	}
	if (cmd.Flags().Changed("context") || a.kubeconfig != "") && !cmd.Flags().Changed("env") {
		errs = append(errs, set("env", plan.EnvKubernetes))
	}
	workloads := diagnoseWorkloads
	if env := cmd.Flags().Lookup("env"); env.Changed && env.Value.String() != plan.EnvLab {
		workloads += diagnoseResolver
		errs = append(errs, set("baseline", plan.Detected))
		for flag, node := range map[string]string{"client-node": a.from, "server-node": a.to} {
			if node != "" && !strings.Contains(node, "/") {
				errs = append(errs, set(flag, node))
			}
		}
	}
	errs = append(errs, set("paths", strings.Join(plan.Texts(diagnose.Paths), ",")), set("workloads", workloads),
		set("repetitions", "3"), set("duration", "500ms"), set("warmup", "100ms"), set("budget", diagnoseBudget.String()))
	if err := errors.Join(errs...); err != nil {
		return plan.Plan{}, "", usageError(err)
	}
	a.what.noTwin = true
	want, err := a.what.buildPlan(cmd)
	if err != nil {
		return want, "", err
	}
	if len(want.Profiles) != 1 && !want.OnCluster() {
		return want, "", commandUsageError(cmd, fmt.Errorf("diagnose measures one profile: %d are given", len(want.Profiles)))
	}
	if n := len(want.Cluster.Contexts); n > 1 || want.Environment == plan.EnvKind && len(want.Profiles) > 1 {
		return want, "", commandUsageError(cmd, fmt.Errorf("diagnose asks one cluster: %d are given", max(n, len(want.Profiles))))
	}
	a.explain, want.Explain = want.Explain, false // which would sample every trial
	if !want.OnCluster() {
		want.Baseline = want.Profiles[0]
		return want, lab, nil
	}
	return want, lab, a.findNamed(cmd, &want)
}

// findNamed looks up the Services and pods that --from and --to name on a cluster. It makes their nodes the client node
// and the server node of the plan, unless these are set, and stores the target of --to in a.named.
func (a *diagnosis) findNamed(cmd *cobra.Command, want *plan.Plan) error {
	at := kube.Location{Kubeconfig: a.kubeconfig}
	if len(want.Cluster.Contexts) > 0 {
		at.Context = want.Cluster.Contexts[0]
	}
	look := func(text string, node *string) (*diagnose.Named, error) {
		if !strings.Contains(text, "/") {
			return nil, nil
		}
		if want.Environment == plan.EnvKind {
			return nil, commandUsageError(cmd, fmt.Errorf("%s: a cluster that is made for the purpose has no Service or pod of yours", text))
		}
		n, err := kube.Find(cmd.Context(), at, text)
		if err != nil {
			return nil, err
		}
		for _, p := range append(slices.Clone(n.Pods), diagnose.Pod{Node: n.Node}) {
			if *node == "" && p.Node != want.Cluster.ClientNode { // the measured paths do not include paths within a node
				*node = p.Node
			}
		}
		return &n, nil
	}
	_, wrong := look(a.from, &want.Cluster.ClientNode)
	named, err := look(a.to, &want.Cluster.ServerNode)
	a.named = named
	return errors.Join(wrong, err)
}

// examined is an environment whose Close first calls end.
type examined struct {
	env.Environment
	end func(context.Context)
}

// Close completes the examination, then closes the environment.
func (x examined) Close(ctx context.Context) error {
	x.end(ctx)
	return x.Environment.Close(ctx)
}

// fitPlan fits the plan to slow paths: fewer repetitions, and windows of at least three round trips (counted as at most
// 1 s each). If round trips exceed longTrip, or a path does not answer, it also leaves out nearWorkloads.
func fitPlan(p plan.Plan, met run.Met) plan.Plan {
	trip := met.Trip
	switch {
	case trip > longTrip || met.Closed:
		p.Repetitions = 1
		p.Workloads = slices.DeleteFunc(slices.Clone(p.Workloads), func(w plan.Workload) bool {
			return slices.Contains(nearWorkloads, w.String()) // which show nothing in so few round trips
		})
	case trip > longTrip/4:
		p.Repetitions = 2
	}
	p.Duration = max(p.Duration, 3*min(trip, time.Second))
	return p
}

// examination reads counters, and tries packet sizes and messages, before and after the trials of a diagnosis.
type examination struct {
	// start is when the diagnosis began. If opening its environment took longer than openEnd, start is later by the excess.
	start    time.Time
	named    *diagnose.Named
	evidence *diagnose.Evidence
	say      func(string, ...any)
}

// observePaths reads counters and tries packet sizes before the trials, and returns what it found. The returned environment
// compares messages when it closes, and adds the evidence.
func (x examination) observePaths(ctx context.Context, e env.Environment, p plan.Plan) (env.Environment, run.Met) {
	site, ok := e.At(p.Profiles[0]).(env.Looker)
	if !ok {
		x.evidence.Missing = append(x.evidence.Missing, "counters and packet sizes: this environment cannot be looked into")
		return e, run.Met{}
	}
	x.say("reading counters and trying packet sizes")
	routes := each.Of(p.Paths, func(path plan.Path) plan.Route { return plan.Single(p.Profiles[0], path) })
	first, stop := context.WithDeadline(ctx, x.start.Add(sizesEnd))
	defer stop()
	met, observed := run.Observe(first, site, routes, x.named)
	return examined{e, func(context.Context) {
		if ctx.Err() == nil {
			x.say("comparing messages")
			last, stop := context.WithDeadline(context.WithoutCancel(ctx), x.start.Add(messageEnd))
			defer stop()
			observed(last, x.evidence)
		}
	}}, met
}
