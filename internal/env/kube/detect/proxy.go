package detect

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const kubeProxy = "kube-proxy"

// detectProxy sets Verdict.KubeProxy: whether kube-proxy runs, and its mode. It takes them from kube-proxy's answer on a
// node, else from its pods and their configuration, else from its rules on the nodes.
func (d *detective) detectProxy() {
	p := &d.KubeProxy
	configured, pods := d.configuredProxy()
	live := map[string]string{}
	traces := map[string]string{}
	for _, h := range d.hostObservations() {
		if h.ProxyMode != "" {
			live[h.Node] = h.ProxyMode
		}
		if t := proxyRulesMode(h); t != "" {
			traces[h.Node] = t
		}
	}
	switch {
	case len(live) > 0:
		groups, modes := groupNodes(live)
		p.Runs, p.Source = Yes, "its own answer: "+strings.Join(groups, "; ")
		p.Mode = modes[0]
		if len(modes) > 1 {
			p.Mode = ""
			d.addDoubt("kube-proxy's mode differs: %s", strings.Join(groups, "; "))
		}
	case pods.Source != "" && configured == nowhere:
		p.Runs, p.Source = no, pods.Source+" is installed and matches no node, as when an operator switches it off"
	case pods.Source != "":
		p.Runs, p.Mode, p.Source = Yes, configured.Value, pods.Source+"; "+configured.Source
		d.addUnproven("kube-proxy's mode in force: no answer of 127.0.0.1:10249/proxyMode on a node was read")
	case len(traces) > 0:
		groups, modes := groupNodes(traces)
		p.Runs, p.Mode, p.Source = Unknown, modes[0], "its rules on the nodes ("+strings.Join(groups, "; ")+"), with no pod of its own: it may run outside of pods, or they are leftovers"
		if len(modes) > 1 {
			p.Mode = ""
		}
		d.addDoubt("rules of kube-proxy are on the nodes (%s), and no pod of its own was found", strings.Join(groups, "; "))
	case d.mayReadDaemonSets() && len(d.hostObservations()) > 0 && slices.ContainsFunc(d.hostObservations(), func(h seenAtEnd) bool { return h.Chains != nil }):
		p.Runs, p.Source = no, "no pod named kube-proxy, and none of its rules on "+fewNames(nodesOf(d.hostObservations()))
	default:
		p.Runs, p.Source = Unknown, "no pod named kube-proxy was found; it may run outside of pods, as in K3s"
		d.addUnproven("whether kube-proxy runs: no node was looked at")
	}
	p.Version = pods.Value
	for _, node := range slices.Sorted(maps.Keys(traces)) {
		switch mode := traces[node]; {
		case p.Runs == Yes && p.Mode != "" && mode != p.Mode:
			d.addDoubt("kube-proxy's mode is %s, and %s has rules of mode %s", p.Mode, node, mode)
		case p.Runs == no:
			d.addDoubt("kube-proxy does not run (%s), and %s has its rules, of mode %s", p.Source, node, mode)
		}
	}
	d.addProxySetting(configured, live)
}

// nowhere is the mode that configuredProxy returns if kube-proxy's DaemonSet selects no node.
var nowhere = configClaim{Source: "runs nowhere"}

func (d *detective) addProxySetting(configured configClaim, live map[string]string) {
	seen := configClaim{}
	if groups, modes := groupNodes(live); len(modes) == 1 {
		seen = configClaim{modes[0], "127.0.0.1:10249/proxyMode, " + groups[0]}
	}
	if configured.Value != "" || seen.Value != "" {
		d.addSetting(kubeProxy, "mode", configured, seen)
	}
	if seen.Value != "" && configured.Value != "" && seen.Value != configured.Value {
		d.addDoubt("kube-proxy is configured for mode %s (%s) and runs in mode %s", configured.Value, configured.Source, seen.Value)
	}
}

// configuredProxy returns kube-proxy's configured mode. The Value of pods is kube-proxy's version, the Source of pods is the
// object that runs kube-proxy. Without such an object both results are zero. If its DaemonSet selects no node, mode is
// nowhere.
func (d *detective) configuredProxy() (mode, pods configClaim) {
	w, ok := d.findDaemonSet(kubeProxy, "rke2-kube-proxy")
	if !ok {
		i := slices.IndexFunc(d.Workloads, func(w workloadSpec) bool {
			return w.Kind == staticPod && strings.HasPrefix(w.Name, kubeProxy)
		})
		if i < 0 {
			return configClaim{}, configClaim{}
		}
		w = d.Workloads[i]
	}
	if w.Kind == daemonSetKind && w.Desired == 0 {
		return nowhere, configClaim{Source: w.String()}
	}
	pods = configClaim{Value: imageVersion(containerImage(w, kubeProxy)), Source: w.String()}
	if w.Ready < w.Desired {
		d.addDoubt("%s: %d of %d pods are ready", w, w.Ready, w.Desired)
	}
	if mode := w.flagValue("proxy-mode"); mode != "" {
		return configClaim{mode, w.String() + " --proxy-mode"}, pods
	}
	if c, ok := d.configMap(w.Namespace, "kube-proxy", "kube-proxy-config"); ok {
		if m, _, ok, _ := config.ProxyConfig(c.Data); ok { // one that cannot be read is not known
			return configClaim{m, c.String()}, pods
		}
	}
	if w.Kind == staticPod {
		return configClaim{"iptables", "kube-proxy's default: " + w.String() + " has no --proxy-mode"}, pods
	}
	return configClaim{Source: "its mode is not in a ConfigMap that could be read"}, pods
}

// proxyRulesMode returns the mode of kube-proxy's rules on a node, "" without such rules.
func proxyRulesMode(h seenAtEnd) string {
	_, device := h.Device("kube-ipvs0")
	chains := h.Chains
	if chains == nil {
		chains = &netstate.Chains{}
	}
	if modes := chains.ProxyModes(device); len(modes) > 0 {
		return modes[0]
	}
	return ""
}

// mayReadDaemonSets reports whether the user may list the DaemonSets of all namespaces.
func (d *detective) mayReadDaemonSets() bool {
	return !slices.ContainsFunc(d.Snapshot.Unproven, func(u string) bool { return strings.Contains(u, "daemonsets") })
}

func nodesOf(seen []seenAtEnd) []string {
	names := each.Of(seen, func(s seenAtEnd) string { return s.Node })
	slices.Sort(names)
	return slices.Compact(names)
}
