package kube

import (
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/env/kube/trait"
	"github.com/cnibench/cnibench/internal/plan"
)

// Nodes returns the nodes of the path: the client's, and the server's if there is one.
func (c *Cluster) Nodes() []string {
	return slices.DeleteFunc([]string{c.place.client, c.place.server}, func(name string) bool { return name == "" })
}

// Ground is what there is to prove a verdict with: the pods that stand, and the direct paths of the plan between them.
func (c *Cluster) Ground(profile string) detect.Ground {
	g := detect.Ground{Profile: profile}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spec := range c.layout.pods {
		s, ok := c.pods[spec.Name]
		if !ok {
			continue
		}
		e := detect.End{Pod: spec.Name, Node: spec.Node, By: c, Host: spec.Host()}
		e.Address, _ = netip.ParseAddr(trait.PickFamily(s.addresses, c.options.Family)) // unknown is the zero address
		switch spec.Name {
		case podClient, hostClient:
			e.Role = "client"
		case podServer, hostServer:
			e.Role = "server"
		}
		g.Ends = append(g.Ends, e)
	}
	for _, p := range c.options.Paths {
		if p.To != plan.Pod && p.To != plan.Host {
			continue
		}
		e, why := c.place.ends(c.options, plan.Single("", p))
		if why != "" {
			continue
		}
		r := detect.Route{Path: p.String(), Client: e.client, Server: e.servers[0]}
		again := func(other detect.Route) bool { return other.Client == r.Client && other.Server == r.Server }
		if r.Client != r.Server && !slices.ContainsFunc(g.Routes, again) {
			g.Routes = append(g.Routes, r)
		}
	}
	return g
}
