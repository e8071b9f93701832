package cli

import (
	"github.com/cnibench/cnibench/internal/plan"
)

// clusterFlags shape the part of a plan that is for Kubernetes.
var clusterFlags = []planFlag{
	{"context", "kubernetes.contexts", "`contexts` of the kubeconfig, separated by commas: several clusters are measured interleaved", func(p *plan.Plan, s string) error {
		p.Cluster.Contexts = split(s)
		return nil
	}},
	{"client-node", "kubernetes.clientNode", "`node` of the client; chosen if not given", func(p *plan.Plan, s string) error { p.Cluster.ClientNode = s; return nil }},
	{"server-node", "kubernetes.serverNode", "`node` of the server; chosen if not given", func(p *plan.Plan, s string) error { p.Cluster.ServerNode = s; return nil }},
	{"node-selector", "kubernetes.nodeSelector", "`labels` of the nodes to choose from, such as pool=net", func(p *plan.Plan, s string) (err error) {
		p.Cluster.NodeSelector, err = plan.ParseLabels(s)
		return err
	}},
	{"tolerations", "kubernetes.tolerations", "`taints` that are tolerated, such as dedicated=net:NoSchedule, separated by commas; * is all", func(p *plan.Plan, s string) error {
		p.Cluster.Tolerations = split(s)
		return nil
	}},
	{"image", "kubernetes.image", "`image` of the agents (cnibench image makes one of this version)", func(p *plan.Plan, s string) error { p.Cluster.Image = s; return nil }},
	{"pull-secrets", "kubernetes.pullSecrets", "`names` of Secrets to pull the image with, separated by commas", func(p *plan.Plan, s string) error {
		p.Cluster.PullSecrets = split(s)
		return nil
	}},
	{"cpu-request", "kubernetes.cpuRequest", "`quantity` of CPU that each agent's pod requests", func(p *plan.Plan, s string) error { p.Cluster.CPURequest = s; return nil }},
	{"memory-request", "kubernetes.memoryRequest", "`quantity` of memory that each agent's pod requests", func(p *plan.Plan, s string) error { p.Cluster.MemoryRequest = s; return nil }},
	{"cpu-limit", "kubernetes.cpuLimit", "`quantity` of CPU that each agent's pod may use: it throttles what is measured, and every trial says so", func(p *plan.Plan, s string) error { p.Cluster.CPULimit = s; return nil }},
	{"load-cpus", "kubernetes.cpus", "`CPUs` of the nodes that load runs on, such as 1 or 2-3", func(p *plan.Plan, s string) (err error) {
		p.Cluster.CPUs, err = plan.ParseCPUs(s)
		return err
	}},
	{"ttl", "kubernetes.ttl", "`time` after which what a killed run left may be removed", func(p *plan.Plan, s string) error { return setDuration(&p.Cluster.TTL, s) }},
}

// switches are the flags of a plan that are said or not.
var switches = []struct {
	name, field, usage string
	at                 func(p *plan.Plan) *bool
}{
	{"session-affinity", "kubernetes.sessionAffinity", "the measured Services keep a client with one backend", func(p *plan.Plan) *bool { return &p.Cluster.SessionAffinity }},
	{"inspect", "kubernetes.inspect", "put a pod with the rights to see rules, programs and frames on both nodes, to prove what runs there", func(p *plan.Plan) *bool { return &p.Cluster.Inspect }},
	{"install", "kubernetes.install", "install each profile in turn on the cluster, measure it and remove it again", func(p *plan.Plan) *bool { return &p.Cluster.Install }},
}
