package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// surveyed is what an environment can measure of a plan.
type surveyed struct {
	profiles []result.Profile
	routes   map[plan.Route]control.Ends
	// served is the set of cases that can be measured.
	served map[plan.Case]bool
	// nodes and schedule are set for a plan with pairs of nodes. Routes of pairs are found when they are measured.
	nodes    []mesh.Node
	schedule mesh.Schedule
	// first is a pair of nodes that can be measured now; zero without pairs.
	first mesh.Pair
}

// surveyPlan asks e which profiles and routes of the plan can be measured. was has the nodes of a resumed file, if
// any. It fails if nothing of the plan can be measured.
func surveyPlan(ctx context.Context, e env.Environment, p plan.Plan, was []mesh.Node) (surveyed, error) {
	profiles, err := e.Profiles(ctx)
	if err != nil {
		return surveyed{}, fmt.Errorf("find the profiles of the environment: %w", err)
	}
	s := surveyed{profiles: profiles, routes: map[plan.Route]control.Ends{}, served: map[plan.Case]bool{}}
	if err := s.findNodes(ctx, e, p, was); err != nil {
		return surveyed{}, err
	}
	for _, r := range p.Routes() {
		q := profileOf(profiles, r.Variant)
		if q == nil || q.Skipped != "" {
			continue
		}
		if err := s.surveyRoute(ctx, e.At(r.Variant), q, r); err != nil {
			return surveyed{}, err
		}
	}
	for _, c := range p.Cases() {
		if _, ok := s.routes[c.Route()]; ok {
			s.served[c] = true
		}
	}
	asked := func(k plan.Case) bool { return slices.Contains(p.Variants(), k.Profile) } // the baseline alone is not enough
	if !slices.ContainsFunc(slices.Collect(maps.Keys(s.served)), asked) {
		wayOut := "cnibench doctor says what this machine lacks"
		stands := func(q result.Profile) bool { return q.Skipped == "" && len(q.NotServed) > 0 }
		switch {
		case !p.OnCluster() && !slices.ContainsFunc(p.Workloads, func(w plan.Workload) bool { return w.Rests() == "" }):
			wayOut = "measure a cluster: --env kubernetes"
		case slices.ContainsFunc(profiles, stands):
			wayOut = "name other paths by --paths (cnibench list paths)"
		case p.OnCluster():
			wayOut = "cnibench cni detect says what runs there, and what shows it"
		}
		return surveyed{}, advice.With(fmt.Errorf("nothing can be measured: %s", describeUnmeasured(profiles)), wayOut)
	}
	return s, nil
}

// surveyRoute finds the ends of one route, or notes in q why the site does not serve the route. It skips a route with
// several servers if the same path with one server is not served: the reason is noted already.
func (s *surveyed) surveyRoute(ctx context.Context, at env.Site, q *result.Profile, r plan.Route) error {
	if _, ok := s.routes[plan.Single(r.Variant, r.Path)]; r.Servers > 1 && !ok {
		return nil
	}
	if why := incapabilityReason(at, r); why != "" {
		noteNotServed(q, r, why)
		return nil
	}
	one := r
	one.Pair = s.first
	ends, err := at.Endpoints(ctx, one)
	var not *control.NotServedError
	if errors.As(err, &not) {
		noteNotServed(q, r, not.Reason)
		return nil
	}
	if err == nil && len(ends.Servers) != r.Servers {
		err = fmt.Errorf("got %d servers", len(ends.Servers))
	}
	if err != nil {
		return fmt.Errorf("find the ends of %s under profile %q: %w", r, r.Variant, err)
	}
	s.routes[r] = ends
	return nil
}

// incapabilityReason returns why a site cannot measure a route that rolls backends, makes new pods or sends nothing, "" if
// it can.
func incapabilityReason(at env.Site, r plan.Route) string {
	_, rolls := at.(env.Roller)
	_, makes := at.(env.PodMaker)
	switch {
	case r.Rolled && !rolls:
		return notRolled
	case r.NewPods && !makes:
		return noNewPods
	case r.Rests != "":
		return manners[r.Rests].unable(at)
	}
	return ""
}

// noteNotServed notes why a profile does not serve a route.
func noteNotServed(q *result.Profile, r plan.Route, reason string) {
	if q.NotServed == nil {
		q.NotServed = map[string]string{}
	}
	q.NotServed[r.String()] = reason
}

// describeUnmeasured returns one text with the reason for each profile why it is not measured.
func describeUnmeasured(profiles []result.Profile) string {
	var reasons []string
	for _, q := range profiles {
		if q.Name.IsTwin() {
			continue // its other instance states the same
		}
		if q.Skipped != "" {
			reasons = append(reasons, q.Name.String()+": "+q.Skipped)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(q.NotServed)) {
			reasons = append(reasons, q.Name.String()+" does not serve "+path+": "+q.NotServed[path])
		}
	}
	if len(reasons) == 0 {
		return "the environment has no profile"
	}
	return strings.Join(reasons, "; ")
}

// profileOf returns the profile of a variant, nil if there is none. For a twin that is not among the profiles, it returns
// the profile of the original.
func profileOf(profiles []result.Profile, v plan.Variant) *result.Profile {
	for _, name := range []plan.Variant{v, v.Original()} {
		if i := slices.IndexFunc(profiles, func(q result.Profile) bool { return q.Name == name }); i >= 0 {
			return &profiles[i]
		}
	}
	return nil
}

// absenceReason returns why a case cannot be measured according to profiles, "" if it can.
func absenceReason(profiles []result.Profile, k plan.Case) string {
	q := profileOf(profiles, k.Profile)
	if q == nil {
		return "no such profile was there"
	}
	return cmp.Or(q.Skipped, q.NotServed[k.Path.String()], q.NotServed[k.Route().String()])
}
