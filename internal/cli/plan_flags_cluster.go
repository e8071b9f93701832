package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/plan"
)

// chartsFlag says where a run that installs something takes it from.
const chartsFlag = "charts"

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
	{"cpu-limit", "kubernetes.cpuLimit", "`quantity` of CPU that each agent's pod may use: it throttles what is measured, and every trial that it stops says so", func(p *plan.Plan, s string) error { p.Cluster.CPULimit = s; return nil }},
	{"load-cpus", "kubernetes.cpus", "`CPUs` of the nodes that load runs on, such as 1 or 2-3", func(p *plan.Plan, s string) (err error) {
		p.Cluster.CPUs, err = plan.ParseCPUs(s)
		return err
	}},
	{"load-balancer-class", "kubernetes.loadBalancerClass", "`class` of the load balancer that external-to-loadbalancer takes; the cluster's own if not given", func(p *plan.Plan, s string) error {
		p.Cluster.LoadBalancerClass = s
		return nil
	}},
	{"service-annotations", "kubernetes.serviceAnnotations", "`annotations` of its Services, [prefix/]name=value separated by commas: clouds choose a balancer by them", func(p *plan.Plan, s string) (err error) {
		p.Cluster.ServiceAnnotations, err = plan.ParseAnnotations(s)
		return err
	}},
	{"load-balancer-timeout", "kubernetes.loadBalancerTimeout", "`time` to wait for its address, 0 for two minutes; without one the path is not served", func(p *plan.Plan, s string) error {
		return setDuration(&p.Cluster.LoadBalancerTimeout, s)
	}},
	{"ttl", "kubernetes.ttl", "`time` after which what a killed run left may be removed; twice what the run may take if not given", func(p *plan.Plan, s string) error { return setDuration(&p.Cluster.TTL, s) }},
}

// elsewhere returns faults for the flags of an environment that is not measured: those of clusters where the lab is, whose
// numbers would be taken for a cluster's, and those of the lab where a cluster is, which gets no delay and no Services by them.
// A plan file may well say something for both.
func (a *planArgs) elsewhere(cmd *cobra.Command, p plan.Plan) plan.Faults {
	var names []string
	why := "is for a cluster, and this plan measures the lab: add --env kubernetes"
	switch {
	case p.Environment == "" || p.Environment == plan.EnvLab:
		names = []string{"kubeconfig", chartsFlag}
		for _, f := range clusterFlags {
			names = append(names, f.name)
		}
		for _, s := range switches {
			names = append(names, s.name)
		}
	case p.OnCluster() && !a.labToo:
		why = "is for the lab, and this plan measures a cluster, which is measured as it stands: leave it out, or add --env lab"
		for _, f := range measureFlags {
			if plan.LabOnly(f.field) {
				names = append(names, f.name)
			}
		}
	}
	var faults plan.Faults
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			faults = append(faults, plan.Fault{Field: "--" + name, Message: why})
		}
	}
	for _, name := range []string{"kubeconfig", "context"} {
		if cmd.Flags().Changed(name) && p.Environment == plan.EnvKind {
			faults = append(faults, plan.Fault{Field: "--" + name, Message: "is for a cluster that is there, and --env kind makes its own: " +
				"leave it out, or take --env kubernetes"})
		}
	}
	if cmd.Flags().Changed(chartsFlag) && p.Environment == plan.EnvKubernetes && !p.Cluster.Install {
		faults = append(faults, plan.Fault{Field: "--" + chartsFlag, Message: "says where what is installed comes from, and this plan " +
			"installs nothing: add --install, or leave it out"})
	}
	return faults
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
