package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// clusterEnvironment is one cluster, or several, as a run sees them: what runs there, what of it was proved, and the pods
// of this run.
type clusterEnvironment struct {
	plan plan.Plan
	// sites are in the order of the plan's contexts.
	sites []*site
}

// site is one cluster of a run.
type site struct {
	// context is "" where the plan names none, kubeconfig where it is looked for as kubectl does.
	context, kubeconfig string
	cluster             *kube.Cluster
	clients             detect.Clients
	// snapshot is what was read of it, verdict what that comes to.
	snapshot detect.Snapshot
	verdict  detect.Verdict
	// profile is what runs there, by the catalogue's name or, outside of it, the CNI's own.
	profile string
	// broken says which claims about it were disproved, "" if none.
	broken string
	facts  facts.Facts
	// silent are the routes on which nothing answered, with the reason.
	silent map[kube.Route]error
}

// of returns the profiles of a site, without its context.
func (e *clusterEnvironment) of(s *site) []plan.Variant {
	var names []plan.Variant
	for _, name := range e.plan.Measured() {
		if e.at(name) == s && (bareProfile(name) || name.Profile() == s.profile) {
			names = append(names, name.Local())
		}
	}
	return names
}

// bareProfile reports whether v is the bare node.
func bareProfile(v plan.Variant) bool { return v.Profile() == profile.Host }

// raiseCluster connects to the clusters of a plan, finds out what runs there, and puts the run's pods into them. It
// returns the plan with the names of what was found.
func (p *program) raiseCluster(ctx context.Context, want plan.Plan, kubeconfig string, say func(string, ...any)) (*clusterEnvironment, plan.Plan, error) {
	contexts := want.Cluster.Contexts
	if len(contexts) == 0 {
		contexts = []string{""}
	}
	var sites []*site
	for _, name := range contexts {
		sites = append(sites, &site{context: name, kubeconfig: kubeconfig})
	}
	return p.raiseSites(ctx, want, sites, say)
}

func (p *program) raiseSites(ctx context.Context, want plan.Plan, sites []*site, say func(string, ...any)) (*clusterEnvironment, plan.Plan, error) {
	e := &clusterEnvironment{sites: sites}
	found := map[string]string{}
	for _, s := range sites {
		if err := p.find(ctx, s, want, say); err != nil {
			return nil, want, s.named(err)
		}
		found[s.context] = s.profile
	}
	e.plan = want.Resolve(found)
	if err := e.plan.Validate(); err != nil {
		return nil, want, usage(err)
	}
	for _, s := range e.sites {
		p.leaves(s.leftovers())
		if err := s.raise(ctx, e.plan, e.of(s), say); err != nil {
			return nil, want, takeDown(ctx, e, s.named(configError(err)))
		}
	}
	return e, e.plan, nil
}

// find connects to the cluster of s, sees that this user may do what a run does, and looks at what runs there.
func (p *program) find(ctx context.Context, s *site, want plan.Plan, say func(string, ...any)) error {
	o, err := clusterOptions(want, s.kubeconfig, s.context, say)
	if err != nil {
		return err
	}
	if s.cluster, err = kube.Connect(o); err != nil {
		return configError(err)
	}
	if err := s.cluster.Preflight(ctx); err != nil {
		return err
	}
	say("looking which CNI runs there")
	if s.clients, err = detect.ClientsOf(s.cluster.Config()); err != nil {
		return err
	}
	if s.snapshot, err = detect.Read(ctx, s.clients, detect.ReadOptions{}); err != nil {
		return err
	}
	s.verdict = detect.Detect(s.snapshot)
	if s.verdict.CNI == "" && want.Cluster.Inspect {
		if err := p.lookAtNodes(ctx, s, want); err != nil {
			return err
		}
	}
	s.profile = nameOf(s.verdict)
	return nil
}

// lookAtNodes finds out on two nodes what no object of the cluster tells: plugins without a daemon are in a file there.
func (p *program) lookAtNodes(ctx context.Context, s *site, want plan.Plan) (err error) {
	o := s.lookouts(want)
	if o.Nodes = firstReady(s.snapshot.Nodes, 2); len(o.Nodes) == 0 {
		return withoutInspect(errors.New("no ready Linux node is known to look at"))
	}
	return withoutInspect(p.fromLookouts(ctx, s, o, func(post *detect.Lookout) (err error) {
		s.snapshot, s.verdict, _, err = detect.Prove(ctx, s.snapshot, detect.Ground{Ends: post.Ends()})
		return err
	}))
}

// fromLookouts posts lookouts, lets them look, and takes them away again.
func (p *program) fromLookouts(ctx context.Context, s *site, o detect.LookoutOptions, look func(*detect.Lookout) error) (err error) {
	gone := p.leaves(s.leftovers())
	post, err := detect.Post(ctx, s.clients, o)
	if err != nil {
		return err
	}
	defer func() {
		left := takeDown(ctx, post, nil)
		if left == nil {
			gone()
		}
		err = errors.Join(err, left)
	}()
	return look(post)
}

// lookouts are those of a run, with their nodes yet to be said.
func (s *site) lookouts(want plan.Plan) detect.LookoutOptions {
	return detect.LookoutOptions{Run: s.cluster.Run(), Image: imageOf(want), PullSecrets: s.cluster.PullSecrets(), Family: want.Lab.Family}
}

// withoutInspect says how to do without lookouts.
func withoutInspect(err error) error {
	wayOut := "leave out --inspect: some of what runs there stays unproven then"
	if first := advice.Of(err); first != "" {
		wayOut = first + "; or " + wayOut
	}
	return advice.With(err, wayOut)
}

// nameOf is what a profile is called that may not be of the catalogue.
func nameOf(v detect.Verdict) string {
	switch {
	case v.Profile != "":
		return v.Profile
	case v.CNI != "":
		return strings.ToLower(v.CNI)
	}
	return "unknown"
}

// raise makes the pods and proves what was found.
func (s *site) raise(ctx context.Context, want plan.Plan, profiles []plan.Variant, say func(string, ...any)) error {
	if err := s.cluster.Up(ctx); err != nil {
		return err
	}
	say("waiting until every path answers")
	var err error
	if s.silent, err = s.cluster.Reach(ctx, profiles); err != nil {
		return err
	}
	say("proving what runs there")
	ground := s.cluster.Ground(s.profile)
	if want.Cluster.Inspect {
		return s.inspect(ctx, want, ground)
	}
	return s.prove(ctx, ground)
}

// inspect proves with pods that may see more than those that measure, which are gone again before anything is measured.
func (s *site) inspect(ctx context.Context, want plan.Plan, ground detect.Ground) (err error) {
	o := s.lookouts(want)
	o.Nodes = s.cluster.Nodes()
	post, err := detect.Post(ctx, s.clients, o)
	if err != nil {
		return withoutInspect(err)
	}
	defer func() { err = takeDown(ctx, post, err) }()
	ground.Ends = append(ground.Ends, post.Ends()...)
	return s.prove(ctx, ground)
}

// prove holds what the cluster's configuration says against what is seen from the pods.
func (s *site) prove(ctx context.Context, ground detect.Ground) error {
	snapshot, verdict, proofs, err := detect.Prove(ctx, s.snapshot, ground)
	if err != nil {
		return err
	}
	s.snapshot, s.verdict = snapshot, verdict
	s.facts = detect.Facts(verdict, snapshot, proofs)
	maps.Copy(s.facts, s.cluster.Facts())
	var broken []string
	for _, p := range proofs {
		if p.Result == detect.Mismatch {
			broken = append(broken, p.String())
		}
	}
	if now := nameOf(verdict); now != s.profile {
		broken = append(broken, fmt.Sprintf("the configuration says %s, and what is seen is %s", s.profile, now))
	}
	s.broken = strings.Join(broken, "; ")
	return nil
}

// named puts the context before an error, where there are several.
func (s *site) named(err error) error {
	if s.context == "" || err == nil {
		return err
	}
	return advice.With(fmt.Errorf("context %s: %w", s.context, err), advice.Of(err))
}

// leftovers says what a run that is not let finish leaves there, and how to remove it.
func (s *site) leftovers() string {
	run, where := s.cluster.Run(), clusterArgs{kubeconfig: s.kubeconfig, context: s.context}
	return fmt.Sprintf("run %s is still in the cluster; remove it: cnibench kube clean --run %s%s", run, run, where.words())
}

// configError is the exit code of a mistake where the way to the cluster is one.
func configError(err error) error {
	var wrong *kube.ConfigError
	if errors.As(err, &wrong) {
		return usage(err)
	}
	return err
}

// clusterOptions are what a plan asks of a cluster.
func clusterOptions(want plan.Plan, kubeconfig, context string, say func(string, ...any)) (kube.Options, error) {
	c := want.Cluster
	o := kube.Options{
		Kubeconfig: kubeconfig, Context: context, Image: imageOf(want), PullSecrets: c.PullSecrets,
		ClientNode: c.ClientNode, ServerNode: c.ServerNode, NodeSelector: c.NodeSelector,
		CPURequest: c.CPURequest, MemoryRequest: c.MemoryRequest, CPULimit: c.CPULimit, CPUs: c.CPUs,
		Paths: want.Paths, Backends: want.Backends(), Rolled: want.Rolled(), Family: want.Lab.Family, TrafficPolicy: want.Lab.TrafficPolicy,
		SessionAffinity: c.SessionAffinity, TTL: want.Lifetime(), Say: say,
		BalancerClass: c.LoadBalancerClass, ServiceAnnotations: c.ServiceAnnotations, BalancerTimeout: c.LoadBalancerTimeout,
		UDP: slices.ContainsFunc(want.Workloads, func(w plan.Workload) bool { return w.Normalize().Protocol() == plan.UDP }),
	}
	for _, text := range c.Tolerations {
		t, err := plan.ParseToleration(text)
		if err != nil {
			return o, usage(err)
		}
		o.Tolerations = append(o.Tolerations, t)
	}
	for _, name := range want.Measured() {
		o.Host = o.Host || bareProfile(name)
	}
	return o, nil
}

// imageOf is the image of a plan, or the one that cnibench image makes of this version.
func imageOf(want plan.Plan) string {
	if want.Cluster.Image != "" {
		return want.Cluster.Image
	}
	return image.DefaultName(buildVersion()).String()
}

// at returns the site that a profile is of.
func (e *clusterEnvironment) at(name plan.Variant) *site {
	context := name.Context()
	for _, s := range e.sites {
		if s.context == context {
			return s
		}
	}
	return e.sites[0]
}

func (e *clusterEnvironment) Facts(context.Context) (facts.Facts, error) {
	all := facts.Facts{facts.Version: buildVersion()}
	for _, s := range e.sites {
		for _, name := range s.facts.Names() {
			value := s.facts[name]
			if s.context != "" && len(e.sites) > 1 {
				value = s.context + ": " + value
			}
			if all[name] != "" && name != facts.Version {
				value = all[name] + "; " + value
			}
			all[name] = value
		}
	}
	return all, nil
}

// Profiles says of each profile whether it is what runs there.
func (e *clusterEnvironment) Profiles(context.Context) ([]result.Profile, error) {
	var all []result.Profile
	for _, name := range e.plan.Measured() {
		q := result.Profile{Name: name}
		s := e.at(name)
		switch {
		case bareProfile(name):
		case name.Profile() != s.profile:
			q.Skipped = fmt.Sprintf("the cluster runs %s", s.found())
		default:
			q.Skipped = s.broken
		}
		all = append(all, q)
	}
	return all, nil
}

// found is what runs there, with what showed it.
func (s *site) found() string {
	if s.verdict.Source == "" {
		return s.profile
	}
	return s.profile + " (" + s.verdict.Source + ")"
}

func (e *clusterEnvironment) Endpoints(_ context.Context, name plan.Variant, p plan.Path) (client, server control.Endpoint, err error) {
	if err := e.answered(name, kube.Route{Path: p}); err != nil {
		return client, server, err
	}
	client, server, err = e.at(name).cluster.Endpoints(name.Local(), p)
	e.apart(name, &client, &server)
	return client, server, err
}

// answered returns a *wire.NotServedError if nothing answered on a route of the profile called name.
func (e *clusterEnvironment) answered(name plan.Variant, r kube.Route) error {
	r.Profile = name.Local()
	silent := e.at(name).silent[r]
	if silent == nil {
		return nil
	}
	why := "it did not pass its proof before the run: " + flat(silent.Error())
	return &control.NotServedError{Profile: name, Path: r.Path.String(), Reason: why}
}

func (e *clusterEnvironment) Backends(_ context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	if err := e.answered(name, kube.Route{Path: p, Backends: n}); err != nil {
		return client, nil, err
	}
	client, servers, err = e.at(name).cluster.Backends(name.Local(), p, n)
	e.allApart(name, &client, servers)
	return client, servers, err
}

// Rolled makes this a run.Roller.
func (e *clusterEnvironment) Rolled(_ context.Context, name plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	if err := e.answered(name, kube.Route{Path: p, Backends: n, Rolled: true}); err != nil {
		return client, nil, err
	}
	client, servers, err = e.at(name).cluster.Rolled(name.Local(), p, n)
	e.allApart(name, &client, servers)
	return client, servers, err
}

// Roll takes a backend out of its Service, or puts it back.
func (e *clusterEnvironment) Roll(ctx context.Context, b control.Backend, in bool) error {
	s := e.at(b.Profile)
	b.Profile = b.Profile.Local()
	return s.named(s.cluster.Roll(ctx, b, in))
}

func (e *clusterEnvironment) allApart(name plan.Variant, client *control.Endpoint, servers []control.Endpoint) {
	e.apart(name, client)
	for i := range servers {
		e.apart(name, &servers[i])
	}
}

// apart keeps endpoints of one name in several clusters apart.
func (e *clusterEnvironment) apart(name plan.Variant, ends ...*control.Endpoint) {
	context := name.Context()
	if context == "" {
		return
	}
	for _, end := range ends {
		end.Name = context + "/" + end.Name
	}
}

// Conditions are those of all clusters: what differs between them cannot be told here.
func (e *clusterEnvironment) Conditions() outcome.Conditions {
	all, _ := e.Facts(context.Background()) // it has no error
	c := outcome.FromFacts(all)
	c.CPUs = slices.Clone(e.plan.Cluster.CPUs)
	return c
}

// Policies makes this a run.PolicyReader.
func (e *clusterEnvironment) Policies(ctx context.Context, name plan.Variant, p plan.Path) []string {
	return e.at(name).cluster.Policies(ctx, name.Local(), p)
}

// Mend makes this a run.Mender.
func (e *clusterEnvironment) Mend(ctx context.Context) (wrong string, err error) {
	var all []string
	for _, s := range e.sites {
		wrong, err := s.cluster.Mend(ctx)
		if err != nil {
			return "", s.named(err)
		}
		if wrong != "" {
			all = append(all, s.named(errors.New(wrong)).Error())
		}
	}
	return strings.Join(all, "; "), nil
}

func (e *clusterEnvironment) Close(ctx context.Context) error {
	var errs []error
	for _, s := range e.sites {
		if s.cluster != nil {
			errs = append(errs, s.named(s.cluster.Close(ctx)))
		}
	}
	return errors.Join(errs...)
}
