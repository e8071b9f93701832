package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// site is one cluster of a run.
type site struct {
	kube.Location
	cluster *kube.Cluster
	clients detect.Clients
	// snapshot is what was read from the cluster, verdict the dataplane that it shows.
	snapshot detect.Snapshot
	verdict  detect.Verdict
	// profile is the detected profile, else the CNI's own name, else "unknown".
	profile string
	// broken lists the claims of the verdict that the proofs disproved, "" if there are none.
	broken string
	facts  facts.Facts
	// measured are the variants of the run that belong to the cluster.
	measured []plan.Variant
	// renews means that the run's pods may be replaced.
	renews bool
	// samplers is nil unless the plan samples CPUs.
	samplers *samplers
	// silent has the routes on which no connection was established before the run or after the last Renew, with the reasons.
	silent map[plan.Route]error
}

// connectAndDetect connects to the cluster of s, checks the user's rights, and detects the CNI. If the API does not show the
// CNI and the plan permits it, connectAndDetect also inspects nodes from privileged pods.
func (s *site) connectAndDetect(ctx context.Context, want plan.Plan, o Options) error {
	var err error
	if s.cluster, err = kube.Connect(clusterOptions(want, s.Location, o)); err != nil {
		return err
	}
	if err := s.cluster.Preflight(ctx); err != nil {
		return err
	}
	o.Say("detecting the CNI")
	if err := s.detectFromAPI(ctx); err != nil {
		return err
	}
	if s.verdict.CNI == "" && want.Cluster.Inspect { // plugins without a daemon have only a file on the nodes
		if _, err := s.inspectNodes(ctx, s.lookoutOptions(want), o); err != nil {
			return withInspectAdvice(want, err)
		}
	}
	s.profile = profileName(s.verdict)
	return nil
}

// detectFromAPI detects the CNI from the API server's objects.
func (s *site) detectFromAPI(ctx context.Context) (err error) {
	if s.clients, err = detect.ClientsOf(s.cluster.Config()); err != nil {
		return err
	}
	if s.snapshot, err = detect.Read(ctx, s.clients); err != nil {
		return err
	}
	s.verdict = detect.Detect(s.snapshot)
	return nil
}

// errNoNode means that inspectNodes has no node to create pods on.
var errNoNode = errors.New("no ready Linux node to inspect")

// inspectNodes creates privileged pods on at.Nodes, by default the first two ready nodes, detects the CNI again from the
// pods' observations, and removes the pods. If at.Pods is true, it also proves the paths between the nodes and between
// ordinary pods.
func (s *site) inspectNodes(ctx context.Context, at detect.LookoutOptions, o Options) (proofs []detect.Proof, err error) {
	if len(at.Nodes) == 0 {
		at.Nodes = detect.ReadyNodes(s.snapshot.Nodes, 2)
	}
	if len(at.Nodes) == 0 {
		return nil, errNoNode
	}
	o.Say("inspecting %v from pods", at.Nodes)
	gone := o.Leaves(s.leftoverMessage())
	post, err := detect.Post(ctx, s.clients, at)
	if err != nil {
		return nil, err
	}
	ground := detect.Ground{Ends: post.Ends()}
	if at.Pods {
		ground.Routes = post.Routes()
	}
	s.snapshot, s.verdict, proofs, err = detect.Prove(ctx, s.snapshot, ground)
	left := env.Close(ctx, post, nil)
	if left == nil {
		gone()
	}
	return proofs, errors.Join(err, left)
}

// lookoutOptions returns the options for the privileged pods of a run. Nodes is not set.
func (s *site) lookoutOptions(want plan.Plan) detect.LookoutOptions {
	return detect.LookoutOptions{Run: s.cluster.Run(), Image: s.cluster.Image(), PullSecrets: s.cluster.PullSecrets(), Family: want.Lab.Family}
}

// withInspectAdvice returns err with advice on how to run without privileged pods on the nodes.
func withInspectAdvice(want plan.Plan, err error) error {
	wayOut := "leave out --inspect: some of what runs there stays unproven then"
	if want.Explain {
		wayOut = "leave out --explain and --inspect: the CPUs of the nodes are not sampled then"
	}
	if first := advice.Of(err); first != "" {
		wayOut = first + "; or " + wayOut
	}
	return advice.With(err, wayOut)
}

// profileName returns the profile of a verdict, else the CNI's own name, else "unknown".
func profileName(v detect.Verdict) string {
	return cmp.Or(v.Profile, strings.ToLower(v.CNI), "unknown")
}

// createAndProve creates the run's pods, waits for a connection on every path of variants, and proves what was detected. If
// the plan permits it, createAndProve also creates privileged pods for the proofs. It removes these pods again, unless the
// plan samples CPUs.
func (s *site) createAndProve(ctx context.Context, want plan.Plan, variants []plan.Variant, o Options) error {
	if err := s.cluster.Up(ctx); err != nil {
		return err
	}
	s.renews = !o.Shared && s.cluster.Renews(ctx) // pods that are looked into stay
	o.Say("waiting until every path answers")
	var err error
	if s.silent, err = s.cluster.Reach(ctx, variants); err != nil {
		return err
	}
	o.Say("proving what runs there")
	ground := s.cluster.Ground(s.profile)
	if !want.Cluster.Inspect {
		return s.proveClaims(ctx, want, ground)
	}
	// These pods have more rights than the pods of a trial. They are removed before anything is measured, unless they
	// sample.
	at := s.lookoutOptions(want)
	at.Nodes, at.Sampling = s.cluster.Nodes(), want.Explain
	if want.Explain {
		at.TTL = want.Lifetime()
	}
	post, err := detect.Post(ctx, s.clients, at)
	if err != nil {
		return withInspectAdvice(want, err)
	}
	ground.Ends = append(ground.Ends, post.Ends()...)
	if err = s.proveClaims(ctx, want, ground); err == nil && want.Explain {
		s.samplers = &samplers{post: post, cpus: want.Cluster.CPUs, turns: map[plan.Route]int{}}
		return nil
	}
	return env.Close(ctx, post, err)
}

// proveClaims compares the claims of the cluster's configuration with what the pods observe. It stores the new verdict, the
// facts and the disproved claims in s.
func (s *site) proveClaims(ctx context.Context, want plan.Plan, ground detect.Ground) error {
	snapshot, verdict, proofs, err := detect.Prove(ctx, s.snapshot, ground)
	if err != nil {
		return err
	}
	s.snapshot, s.verdict = snapshot, verdict
	s.facts = detect.Facts(verdict, snapshot, proofs)
	maps.Copy(s.facts, s.cluster.Facts())
	if s.facts[facts.NodesMachines] == "1" && len(want.Cluster.CPUs) == 0 {
		cpus, _ := strconv.Atoi(s.facts[facts.CPUs]) // an unknown number counts as too few: each trial has its own CPUs
		s.facts[facts.Placement] = string(want.Lab.CPU.On(cpus))
	}
	broken := each.Of(detect.Mismatches(proofs), func(p detect.Proof) string { return p.String() })
	if now := profileName(verdict); now != s.profile {
		broken = append(broken, fmt.Sprintf("the configuration says %s, and what is seen is %s", s.profile, now))
	}
	s.broken = strings.Join(broken, "; ")
	return nil
}

// withContext prefixes an error with the context of the cluster, if that is set.
func (s *site) withContext(err error) error {
	if s.Context == "" || err == nil {
		return err
	}
	return advice.With(fmt.Errorf("context %s: %w", s.Context, err), advice.Of(err))
}

// leftoverMessage returns the message that the run is still in the cluster, with the command that removes it.
func (s *site) leftoverMessage() string {
	run := s.cluster.Run()
	return fmt.Sprintf("run %s is still in the cluster; remove it: cnibench kube clean --run %s%s", run, run, s.Flags())
}

// profileWithSource returns the name of the detected profile, followed by the object that shows it.
func (s *site) profileWithSource() string {
	if s.verdict.Source == "" {
		return s.profile
	}
	return s.profile + " (" + s.verdict.Source + ")"
}

// clusterOptions returns the options with which package kube measures a plan on the cluster at.
func clusterOptions(want plan.Plan, at kube.Location, options Options) kube.Options {
	o := kube.Options{
		Kubeconfig: at.Kubeconfig, Context: at.Context, Cluster: want.Cluster, Say: options.Say,
		Paths: want.Paths, Backends: want.Backends(), Rolled: want.Rolled(), Family: want.Lab.Family, TrafficPolicy: want.Lab.TrafficPolicy, Waits: kube.Waits{Settle: options.Settle},
		Sends:   kube.Sends{Pairs: want.Pairs, Seed: want.Seed, UDP: slices.ContainsFunc(want.Workloads, func(w plan.Workload) bool { return w.Normalize().Traits().Protocol == plan.UDP })},
		NewPods: slices.ContainsFunc(want.Workloads, func(w plan.Workload) bool { return w.Normalize().Traits().NewPods() }),
		Rests:   slices.ContainsFunc(want.Workloads, func(w plan.Workload) bool { return w.Rests() != "" }),
		Host:    slices.ContainsFunc(want.Measured(), isHostProfile),
		Tools:   want.Tools(),
	}
	if options.Shared {
		o.Backends = append(o.Backends, sharedBackends)
	}
	for _, w := range want.Workloads {
		o.Members = max(o.Members, w.Traits().Job.Members)
	}
	o.Image, o.TTL = imageOf(want, options.Version), want.Lifetime()
	return o
}

// DetectOptions are the options of Detect.
type DetectOptions struct {
	kube.Location
	// PullSecrets are the image pull Secrets for the image in Lookouts. (optional)
	PullSecrets []string
	// Lookouts describes the privileged pods. If it has no Image, only the API is read.
	Lookouts detect.LookoutOptions
}

// Detect finds out which CNI a cluster runs. If o.Lookouts has an image, it also proves the verdict from pods on the nodes.
func Detect(ctx context.Context, o DetectOptions, options Options) (detect.Finding, error) {
	s := site{Location: o.Location}
	var err error
	if s.cluster, err = kube.Connect(kube.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, Cluster: plan.Cluster{PullSecrets: o.PullSecrets}, Say: options.Say}); err != nil {
		return detect.Finding{}, err
	}
	if err := s.detectFromAPI(ctx); err != nil || o.Lookouts.Image == "" {
		return detect.Finding{Verdict: s.verdict}, err
	}
	o.Lookouts.Run, o.Lookouts.PullSecrets = s.cluster.Run(), s.cluster.PullSecrets()
	proofs, err := s.inspectNodes(ctx, o.Lookouts, options)
	if errors.Is(err, errNoNode) {
		err = advice.With(err, "name one by --nodes")
	}
	return detect.Finding{Verdict: s.verdict, Proofs: proofs}, err
}
