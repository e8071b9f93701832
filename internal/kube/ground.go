package kube

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
)

// Names of the pods that look at the nodes with the rights to see: they exist if Options.Inspect asks for them, and nothing
// is measured in them.
const (
	lookClient = "look-client"
	lookServer = "look-server"
)

// lookers returns the pods that look, and the node of each.
func (at placement) lookers() map[string]string {
	nodes := map[string]string{lookClient: at.client}
	if at.server != "" {
		nodes[lookServer] = at.server
	}
	return nodes
}

func isLooker(name string) bool { return name == lookClient || name == lookServer }

// seeing gives a pod the rights to look at its node: its network, its rules and its BPF programs, and the configuration of
// its CNI plugins to read. It changes nothing there.
func seeing(spec *corev1.PodSpec) {
	spec.SecurityContext.RunAsNonRoot, spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsGroup = ptr(false), ptr(int64(0)), ptr(int64(0))
	const conf = "/etc/cni/net.d"
	kind := corev1.HostPathDirectory
	spec.Volumes = []corev1.Volume{{Name: "cni-conf", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: conf, Type: &kind}}}}
	c := &spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "cni-conf", MountPath: conf, ReadOnly: true}}
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW", "BPF", "PERFMON", "SYS_ADMIN"}
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
		e.Address, _ = netip.ParseAddr(pickFamily(s.addresses, c.options.Family)) // the zero is none
		switch spec.Name {
		case podClient, hostClient, lookClient:
			e.Role = "client"
		case podServer, hostServer, lookServer:
			e.Role = "server"
		}
		g.Ends = append(g.Ends, e)
	}
	for _, p := range c.options.Paths {
		if p.To != plan.Pod && p.To != plan.Host {
			continue
		}
		e, why := c.place.ends(c.options, p, false)
		r := detect.Route{Path: p.String(), Client: e.client, Server: e.server}
		again := func(other detect.Route) bool { return other.Client == r.Client && other.Server == r.Server }
		if why == "" && e.client != e.server && !slices.ContainsFunc(g.Routes, again) {
			g.Routes = append(g.Routes, r)
		}
	}
	return g
}
