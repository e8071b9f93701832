//go:build e2e

package e2e

import (
	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan"
)

// endsOf returns the two ends of a path with one server.
func endsOf(e *kube.Cluster, v plan.Variant, p plan.Path) (client, server control.Endpoint, err error) {
	ends, err := e.Endpoints(plan.Single(v, p))
	if err != nil {
		return client, server, err
	}
	return ends.Client, ends.Servers[0], nil
}

// backendsOf returns the client and the servers of a route.
func backendsOf(e *kube.Cluster, r plan.Route) (client control.Endpoint, servers []control.Endpoint, err error) {
	ends, err := e.Endpoints(r)
	return ends.Client, ends.Servers, err
}
