package plan

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// Route is a variant on a path, with the number of servers at its far end.
type Route struct {
	Variant Variant
	Path    Path
	// Servers is the number of servers, at least 1. Several servers are the backends of a Service, or members of a job.
	Servers int
	// Rolled means that the servers leave their Service and return during the measurement.
	Rolled bool
	// NewPods means that each client is a pod that is created during the measurement.
	NewPods bool
	// Rests is the kind of workload that sends nothing during the measurement, "" for others.
	Rests Kind
	// NIC is the model of the NICs during the measurement; "" means the model of the variant.
	NIC NIC
	// Members is the number of members of a job, the client and the servers; 0 for no job.
	Members int
	// Pair has the nodes of the client and the server; it is zero if the environment chooses them.
	Pair mesh.Pair
}

// Single returns the route of a variant on a path with one server.
func Single(v Variant, p Path) Route { return Route{Variant: v, Path: p, Servers: 1} }

// Route returns what an environment must provide for the trials of c: the variant, the path, its servers, and how they
// change during the measurement.
func (c Case) Route() Route {
	is := c.Workload.Traits()
	return Route{Variant: c.Profile, Path: c.Path, Servers: c.Workload.Servers(c.Path), Rolled: c.Workload.Rolled(c.Path), NewPods: is.NewPods(), Rests: c.Workload.Rests(), NIC: c.Workload.nicModel(), Members: is.Job.Members}
}

// Routes returns every route of a plan once: first each variant on each path with one server, then the routes of the
// cases.
func (p Plan) Routes() []Route {
	var routes []Route
	seen := map[Route]bool{}
	add := func(r Route) {
		if !seen[r] {
			seen[r] = true
			routes = append(routes, r)
		}
	}
	for _, v := range p.Measured() {
		for _, path := range p.Paths {
			add(Single(v, path))
		}
	}
	for _, c := range p.Cases() {
		add(Single(c.Profile, c.Path))
		add(c.Route())
	}
	return routes
}

// String returns the description of the route in the header of a result, without its variant.
func (r Route) String() string {
	switch {
	case r.NewPods:
		return r.Path.String() + " with new pods"
	case r.Rests != "":
		return r.Path.String() + " at rest"
	case r.Members > 0:
		return fmt.Sprintf("%s with a job of %d members", r.Path, r.Members)
	case r.Rolled:
		return fmt.Sprintf("%s with %d backends that are rolled", r.Path, r.Servers)
	case r.NIC != "":
		return fmt.Sprintf("%s under NIC model %s", r.Path, r.NIC)
	case r.Servers > 1:
		return fmt.Sprintf("%s with %d backends", r.Path, r.Servers)
	}
	return r.Path.String()
}

// ServerNode returns the index of the node of server i, counted from 0. The servers are on all nodes in turn, beginning
// with the server node of the path. nodes is the number of nodes.
func (r Route) ServerNode(i, nodes int) int { return (r.Path.ServerNode() + i) % nodes }

// Local returns the route without the cluster's context.
func (r Route) Local() Route {
	r.Variant = r.Variant.Local()
	return r
}
