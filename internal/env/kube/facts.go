package kube

import (
	"cmp"
	"fmt"

	"github.com/cnibench/cnibench/internal/measure/facts"
)

// Names of the facts about the place that a run has in a cluster.
const (
	// FactAgents is how agents are reached: exec, or port-forward with the reason.
	FactAgents = "kube.agents"
	// FactClient, FactServer and FactThird are the nodes of the ends and of a client outside.
	FactClient = "kube.node.client"
	FactServer = "kube.node.server"
	FactThird  = "kube.node.third"
	// FactControl are those of them that the control plane is on: it competes for their CPUs.
	FactControl = "kube.node.control_plane"
	// FactRequests and FactLimit are what the pods asked for, and the limit that throttles them.
	FactRequests = "kube.pods.requests"
	FactLimit    = "kube.pods.cpu_limit"
	// FactBalancer are the addresses of Services of type LoadBalancer, FactBalancerWay which part of the way there is measured.
	FactBalancer    = "kube.load_balancer"
	FactBalancerWay = "kube.load_balancer.way"
)

// Facts returns the conditions that this package has made: nodes, requests, how agents are reached.
func (c *Cluster) Facts() facts.Facts {
	f := facts.Facts{FactAgents: "exec"}
	c.mu.Lock()
	if c.forward {
		f[FactAgents] = "port-forward: exec is refused: " + c.refused
	}
	c.mu.Unlock()
	set := func(name, value string) {
		if value != "" {
			f[name] = value
		}
	}
	set(FactClient, c.place.client)
	set(FactServer, c.place.server)
	set(FactThird, c.place.third)
	set(FactControl, c.place.controlPlanes())
	set(FactLimit, c.options.CPULimit)
	set(FactBalancer, c.balancerFact())
	set(FactBalancerWay, c.balancerWay())
	if c.options.CPURequest != "" || c.options.MemoryRequest != "" {
		f[FactRequests] = fmt.Sprintf("cpu %s, memory %s", cmp.Or(c.options.CPURequest, "none"), cmp.Or(c.options.MemoryRequest, "none"))
	}
	return f
}
