package detect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Names of CNIs that code refers to.
const (
	cilium  = "cilium"
	calico  = "calico"
	canal   = "canal"
	flannel = "flannel"
	kindnet = "kindnet"
	// kubeRouter may connect pods, or only filter the traffic of another CNI.
	kubeRouter = "kube-router"
)

// cnis are the CNIs that are recognized by their daemon, in the order in which identifyCNI searches.
var cnis = profile.CNIs()

// cniNamed returns the CNI called name, or the zero value if there is none.
func cniNamed(name string) profile.CNI {
	c, _ := profile.LookupCNI(name)
	return c
}

// CNIOf returns the name of the CNI to which a DaemonSet of this name belongs, or "". It returns "" for kube-router, which may
// run only as a filter in addition to a CNI.
func CNIOf(daemonSet string) string {
	if slices.Contains(profile.Multus, daemonSet) {
		return residue.Multus
	}
	for _, c := range cnis {
		if c.Name != kubeRouter && slices.Contains(c.Daemons, daemonSet) {
			return c.Name
		}
	}
	return ""
}

// controllers are the names of CNIs' Deployments that do not begin with the name of a daemon.
var controllers = []string{"calico-typha", "calico-kube-controllers", "calico-apiserver", "tigera-operator",
	"kube-ovn-controller", "kube-ovn-pinger", "kube-ovn-monitor", "ovn-central", "ovs-ovn", "antrea-controller"}

// ServesNetwork reports whether a pod's name shows that it belongs to a CNI or to kube-proxy.
func ServesNetwork(pod string) bool {
	of := slices.Concat(profile.Multus, controllers, []string{kubeProxy})
	for _, c := range cnis {
		of = append(of, c.Daemons...)
	}
	return slices.ContainsFunc(of, func(name string) bool { return pod == name || strings.HasPrefix(pod, name+"-") })
}

// companions are DaemonSets other than the CNI's that change the traffic of pods. says is the doubt to add for each.
var companions = []struct{ daemon, says string }{
	{"istio-cni-node", "istio-cni is installed: traffic of pods in the mesh goes through a proxy"},
	{"ztunnel", "Istio's ztunnel runs: traffic of pods in the ambient mesh goes through it"},
	{"linkerd-cni", "linkerd-cni is installed: traffic of pods in the mesh goes through a proxy"},
	{"node-local-dns", "NodeLocal DNS runs: it adds NOTRACK rules on the nodes"},
}

// present is a CNI whose DaemonSet was found.
type present struct {
	profile.CNI
	daemon workloadSpec
}

// identifyCNI finds the CNI, and calls the method for that CNI, which sets the profile and settings. It adds a doubt if
// there are several CNIs, or if the CNI's pods are not all ready.
func (d *detective) identifyCNI() {
	var found []present
	for _, c := range cnis {
		if w, ok := d.findDaemonSet(c.Daemons...); ok {
			found = append(found, present{c, w})
		}
	}
	// One that is selected by no node does not run: Cilium's instructions for EKS turn aws-node off so.
	if running := each.Where(found, func(p present) bool { return p.daemon.Desired > 0 }); len(running) > 0 {
		found = running
	}
	found = d.servingCNIs(found)
	d.addCompanionDoubts()
	switch len(found) {
	case 0:
		d.detectStandalone()
		return
	case 1:
	default:
		names := each.Of(found, func(p present) string { return p.Title + " (" + p.daemon.String() + ")" })
		d.addDoubt("several CNIs at once: %s", strings.Join(names, ", "))
		if found = d.cnisInFirstConflist(found); len(found) != 1 {
			d.Title = "several CNIs at once"
			return
		}
	}
	p := found[0]
	d.CNI, d.Source = p.Name, p.daemon.String()
	d.Version = imageVersion(containerImage(p.daemon, p.Container))
	if p.daemon.Ready < p.daemon.Desired {
		d.addDoubt("%s: %d of %d pods are ready", p.daemon, p.daemon.Ready, p.daemon.Desired)
	}
	d.own = len(d.But)
	switch {
	case p.Name == cilium:
		d.detectCilium(p.daemon)
	case p.Name == calico:
		d.detectCalico(p.daemon)
	case p.Name == flannel, p.Name == canal:
		d.detectFlannel(p.CNI, p.daemon)
	case p.Name == kindnet && !strings.Contains(containerImage(p.daemon, p.Container), "networking/kindnet"):
		d.detectKindnet(p.daemon)
	default:
		d.detectByConfig(p)
	}
}

// containerImage returns the image of the container called container, else of the first container, else "".
func containerImage(w workloadSpec, container string) string {
	for _, c := range w.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	if len(w.Containers) == 0 {
		return ""
	}
	return w.Containers[0].Image
}

// servingCNIs returns the CNIs in found whose dataplane serves pods. If Cilium is chained to a CNI, or another CNI only
// hands out Cilium's addresses, it omits that CNI. It omits Calico if it is chained to a cloud's CNI, and kube-router if its
// router is off. For the last two it adds to But that they only enforce policies.
func (d *detective) servingCNIs(found []present) []present {
	names := func(name string) bool {
		return slices.ContainsFunc(found, func(p present) bool { return p.Name == name })
	}
	drop := map[string]bool{}
	if c, ok := d.configMap("kube-system", "cilium-config"); ok && names(cilium) {
		switch c.Data["cni-chaining-mode"] {
		case "aws-cni":
			drop["aws-vpc"] = names("aws-vpc")
		case "generic-veth":
			drop["azure-cni"] = names("azure-cni")
			drop[calico], drop[flannel] = names(calico), names(flannel)
		}
		if c.Data["ipam"] == "delegated-plugin" { // Azure hands out the addresses, Cilium moves the packets
			drop["azure-cni"] = names("azure-cni")
		}
	}
	for _, cloud := range []string{"aws-vpc", "azure-cni"} {
		if names(calico) && names(cloud) && !drop[cloud] {
			d.But = append(d.But, "Calico enforces policies only: it is chained to "+cloud)
			drop[calico] = true
		}
	}
	for _, p := range found {
		if p.Name == kubeRouter && p.daemon.flagValue("run-router") == "false" {
			d.But = append(d.But, "kube-router ("+p.daemon.String()+") runs without its router: it enforces NetworkPolicies and connects no pods")
			drop[kubeRouter] = true
		}
	}
	return slices.DeleteFunc(found, func(p present) bool { return drop[p.Name] })
}

// flagValue returns the value of the command-line flag called name of a workload's containers, "" if no container has it.
func (w workloadSpec) flagValue(name string) string {
	for _, c := range w.Containers {
		for i, a := range c.Args {
			key, value, given := strings.Cut(strings.TrimLeft(a, "-"), "=")
			switch {
			case key != name:
			case given:
				return value
			case i+1 < len(c.Args):
				return c.Args[i+1]
			}
		}
	}
	return ""
}

// cnisInFirstConflist compares found with the plugin in the first conflist of every inspected node. It returns only the CNI to
// which that plugin belongs, or nil if the CNI is not in found. It returns found unchanged if the nodes differ, or if no
// conflist was read.
func (d *detective) cnisInFirstConflist(found []present) []present {
	types := map[string]bool{}
	for _, list := range d.firstConflists() {
		types[list.owner()] = true
	}
	if len(types) != 1 {
		return found
	}
	var kept []present
	for _, p := range found {
		if types[p.Name] {
			kept = append(kept, p)
		}
	}
	if len(kept) == 1 {
		d.addDoubt("the nodes' first conflist is %s's", kept[0].Title)
	}
	return kept
}

func (d *detective) addCompanionDoubts() {
	for _, c := range companions {
		if _, ok := d.findDaemonSet(c.daemon); ok {
			d.addDoubt("%s", c.says)
		}
	}
	if w, ok := d.findDaemonSet(profile.Multus...); ok {
		d.But = append(d.But, "Multus ("+w.String()+") hands pods their first device by this CNI, further ones by NetworkAttachmentDefinitions")
	}
}

// detectKindnet sets the profile to kind's kindnetd, whose conflist has the plugin ptp, or to the project kindnet, which has
// its own plugin. If no conflist was read, it assumes kindnetd.
func (d *detective) detectKindnet(w workloadSpec) {
	d.addSetting(kindnet, "routes", configClaim{"one for each node's pods", "kindnetd"}, configClaim{})
	d.Encapsulation = configClaim{"none", "kindnetd makes routes only"}
	d.Encryption = configClaim{"none", "kindnetd has none"}
	lists := d.firstConflists()
	d.Profile = "kindnetd"
	for _, list := range lists {
		switch main := list.main(); {
		case main.Type == "ptp":
		case list.owner() == kindnet:
			d.Profile = kindnet
		default:
			d.Title = "kindnet with plugin " + main.Type + ": no profile describes it"
			d.Profile = ""
			return
		}
	}
	if but := profile.ByFlowtable(cmp.Or(w.flagValue("fastpath-threshold"), "20")); d.Profile == kindnet && but != "" {
		d.But = append(d.But, but)
	}
	if len(lists) == 0 {
		d.addUnproven("kindnet's plugin on the nodes: no conflist was read, kind's default is ptp")
	}
}

// addSetting adds a setting with its configured value asked and the value in force, seen.
func (d *detective) addSetting(component, name string, asked, seen configClaim) {
	d.Settings = append(d.Settings, setting{component, name, asked.Value, asked.Source, seen.Value, seen.Source})
}
