package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// ends are the endpoints of a path under a profile: one server, or several behind the same Service. What the client dials
// is in the first.
type ends struct {
	client  control.Endpoint
	servers []control.Endpoint
}

// route is a profile on a path with so many servers, which are rolled or stay.
type route struct {
	profile plan.Variant
	path    plan.Path
	servers int
	rolled  bool
}

// String is what a header calls the route of a profile.
func (r route) String() string {
	switch {
	case r.rolled:
		return fmt.Sprintf("%s with %d backends that are rolled", r.path, r.servers)
	case r.servers > 1:
		return fmt.Sprintf("%s with %d backends", r.path, r.servers)
	}
	return r.path.String()
}

// routeOf returns the route that a case takes.
func routeOf(c plan.Case) route {
	return route{c.Profile, c.Path, c.Workload.Servers(c.Path), c.Workload.Rolled(c.Path)}
}

// single is the route of a profile on a path with one server.
func single(profile plan.Variant, p plan.Path) route {
	return route{profile: profile, path: p, servers: 1}
}

// place is what stands in the environment.
type place struct {
	profiles []result.Profile
	routes   map[route]ends
	// served are the cases that can be measured.
	served map[plan.Case]bool
}

// survey asks env for every profile and path of the plan. It fails if nothing that was asked for can be measured.
func survey(ctx context.Context, env Environment, p plan.Plan) (place, error) {
	profiles, err := env.Profiles(ctx)
	if err != nil {
		return place{}, fmt.Errorf("find the profiles of the environment: %w", err)
	}
	s := place{profiles: profiles, routes: map[route]ends{}, served: map[plan.Case]bool{}}
	at := map[plan.Variant]*result.Profile{}
	for i := range profiles {
		at[profiles[i].Name] = &profiles[i]
	}
	asked := map[route]bool{}
	for _, r := range routesOf(p) {
		q := at[r.profile]
		if q == nil {
			q = at[r.profile.Original()]
		}
		if q == nil || q.Skipped != "" || asked[r] {
			continue
		}
		asked[r] = true
		if err := s.ask(ctx, env, q, r); err != nil {
			return place{}, err
		}
	}
	for _, c := range p.Cases() {
		if _, ok := s.routes[routeOf(c)]; ok {
			s.served[c] = true
		}
	}
	if !s.serves(p.Profiles) {
		wayOut := "cnibench doctor says what this machine lacks"
		stands := func(q result.Profile) bool { return q.Skipped == "" && len(q.NotServed) > 0 }
		switch {
		case slices.ContainsFunc(profiles, stands):
			wayOut = "name other paths by --paths (cnibench list paths)"
		case p.OnCluster():
			wayOut = "cnibench cni detect says what runs there, and what shows it"
		}
		return place{}, advice.With(fmt.Errorf("nothing can be measured: %s", whyNot(profiles)), wayOut)
	}
	return s, nil
}

// serves says whether there is a case of any of the profiles that were asked for: the baseline alone is nothing.
func (s *place) serves(profiles []plan.Variant) bool {
	for c := range s.served {
		if slices.Contains(profiles, c.Profile) {
			return true
		}
	}
	return false
}

// routesOf returns every profile on every path of the plan, and what cases have besides.
func routesOf(p plan.Plan) []route {
	var routes []route
	for _, name := range p.Measured() {
		for _, path := range p.Paths {
			routes = append(routes, single(name, path))
		}
	}
	// A path is asked for with one server before it is with several.
	for _, c := range p.Cases() {
		routes = append(routes, single(c.Profile, c.Path), routeOf(c))
	}
	return routes
}

// ask finds the ends of one route, or why there are none.
func (s *place) ask(ctx context.Context, env Environment, q *result.Profile, r route) error {
	if r.servers > 1 {
		return s.askBackends(ctx, env, q, r)
	}
	client, server, err := env.Endpoints(ctx, r.profile, r.path)
	var not *control.NotServedError
	if errors.As(err, &not) {
		notServed(q, r, not.Reason)
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the ends of %s under profile %q: %w", r.path, r.profile, err)
	}
	s.routes[r] = ends{client, []control.Endpoint{server}}
	return nil
}

// notServed notes why a profile does not serve a route.
func notServed(q *result.Profile, r route, reason string) {
	if q.NotServed == nil {
		q.NotServed = map[string]string{}
	}
	q.NotServed[r.String()] = reason
}

// askBackends finds the ends of a route with several servers. A path that is not served at all has been noted.
func (s *place) askBackends(ctx context.Context, env Environment, q *result.Profile, r route) error {
	if _, ok := s.routes[single(r.profile, r.path)]; !ok {
		return nil
	}
	find := env.Backends
	if r.rolled {
		roller, ok := env.(Roller)
		if !ok {
			notServed(q, r, notRolled)
			return nil
		}
		find = roller.Rolled
	}
	client, servers, err := find(ctx, r.profile, r.path, r.servers)
	var not *control.NotServedError
	if errors.As(err, &not) {
		notServed(q, r, not.Reason)
		return nil
	}
	if err == nil && len(servers) != r.servers {
		err = fmt.Errorf("there are %d", len(servers))
	}
	if err != nil {
		return fmt.Errorf("find %d backends of %s under profile %q: %w", r.servers, r.path, r.profile, err)
	}
	s.routes[r] = ends{client, servers}
	return nil
}

// whyNot says for each profile why it is not measured.
func whyNot(profiles []result.Profile) string {
	var reasons []string
	for _, q := range profiles {
		if q.Name.IsTwin() {
			continue // it says what its other instance says
		}
		if q.Skipped != "" {
			reasons = append(reasons, string(q.Name)+": "+q.Skipped)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(q.NotServed)) {
			reasons = append(reasons, string(q.Name)+" does not serve "+path+": "+q.NotServed[path])
		}
	}
	if len(reasons) == 0 {
		return "no profile stands there"
	}
	return strings.Join(reasons, "; ")
}

// absent returns why profiles have no such case, "" if they have it. A twin that is not among them is as its other
// instance is.
func absent(profiles []result.Profile, k plan.Case) string {
	named := func(name plan.Variant) int {
		return slices.IndexFunc(profiles, func(q result.Profile) bool { return q.Name == name })
	}
	i := named(k.Profile)
	if i < 0 {
		i = named(k.Profile.Original())
	}
	if i < 0 {
		return "no such profile was there"
	}
	if profiles[i].Skipped != "" {
		return profiles[i].Skipped
	}
	if why := profiles[i].NotServed[k.Path.String()]; why != "" {
		return why
	}
	return profiles[i].NotServed[routeOf(k).String()]
}
