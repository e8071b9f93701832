package detect

import (
	"maps"
	"slices"
	"strings"
)

// ciliumConfig is the ConfigMap that Cilium's agents read.
const ciliumConfig = "cilium-config"

// detectCilium sets the profile and settings of Cilium from its ConfigMap and from the agents' status, because agents may
// fall back to other modes. w is Cilium's DaemonSet.
func (d *detective) detectCilium(w workloadSpec) {
	c, ok := d.configMap(w.Namespace, ciliumConfig)
	if !ok {
		d.addUnproven("Cilium's mode as configured: %s in %s was not read", ciliumConfig, w.Namespace)
		c = configMap{Namespace: w.Namespace, Name: ciliumConfig}
	}
	if ok {
		if r, good := d.judgeObjects(c.configInput()); good {
			d.adoptReport(r)
		}
	}
	live, source, agree := d.liveCiliumStatus()
	switch {
	case source == "":
		d.addUnproven("Cilium's mode in force (host routing above all): cilium-dbg status was not read on any node")
		if !ok {
			d.Profile, d.Title = "", "Cilium in a mode that could not be read"
			return
		}
	case !agree:
		d.Profile, d.Title = "", "Cilium in modes that differ between nodes"
	default:
		d.setCiliumInForce(c, live, source)
	}
	d.setCiliumEncapsulation(live, source)
}

// setCiliumInForce overrides the ConfigMap c with the agents' status live, and judges the result. It sets the profile from
// that judgment. It records the settings that the status shows as in force. source says on which nodes live was read.
func (d *detective) setCiliumInForce(c configMap, live ciliumStatus, source string) {
	options, shown := live.options()
	data := map[string]string{}
	maps.Copy(data, c.Data)
	maps.Copy(data, options)
	r, ok := d.judgeObjects(configMap{Namespace: c.Namespace, Name: c.Name, Data: data}.configInput())
	if !ok {
		return
	}
	d.setProfile(r)
	for _, s := range r.Settings {
		if shown[s.Name] {
			d.setInForce(cilium, s.Name, configClaim{s.Value, source})
		}
	}
	d.setInForce(cilium, "attach mode", configClaim{strings.ToLower(live["Attach Mode"]), source})
	d.setInForce(cilium, "socket LB coverage", configClaim{strings.ToLower(live["Details/Socket LB Coverage"]), source})
}

// liveCiliumStatus parses the agents' status of all nodes. live is the last status in the order of the nodes' names. source
// says which nodes have a valid status, "" if none has. agree reports whether all of these nodes have the same mode.
func (d *detective) liveCiliumStatus() (live ciliumStatus, source string, agree bool) {
	by := map[string]string{}
	for _, node := range slices.Sorted(maps.Keys(d.CiliumStatus)) {
		s, err := parseCiliumStatus(d.CiliumStatus[node])
		if err != nil {
			d.addUnproven("Cilium's mode in force on %s: %v", node, err)
			continue
		}
		by[node] = s.modeText()
		live = s
	}
	if len(by) == 0 {
		return nil, "", false
	}
	groups, modes := groupNodes(by)
	if len(modes) > 1 {
		d.addDoubt("Cilium's nodes differ: %s", strings.Join(groups, "; "))
	}
	return live, "cilium-dbg status on " + fewNames(slices.Sorted(maps.Keys(by))), len(modes) == 1
}

// setCiliumEncapsulation sets the encapsulation and the encryption that the agents' status live shows. WireGuard counts as
// encapsulation if there is no tunnel.
func (d *detective) setCiliumEncapsulation(live ciliumStatus, source string) {
	if n := live.encapsulation(); n != "" {
		d.Encapsulation = configClaim{n, source}
	}
	if e := strings.ToLower(live["Encryption"]); e == "disabled" {
		d.Encryption = configClaim{"none", source}
	} else if e != "" {
		d.Encryption = configClaim{e, source}
	}
	if d.Encryption.Value == "wireguard" && d.Encapsulation.Value == "none" {
		d.Encapsulation = configClaim{"wireguard", d.Encryption.Source}
	}
}

// ciliumTunnelReason returns why Cilium has a tunnel's device beside native routing, "" if it should have none. Pods' packets
// do not take it.
func (s Snapshot) ciliumTunnelReason() string {
	c, _ := s.configMap("kube-system", "cilium-config")
	for _, name := range []string{"enable-egress-gateway", "enable-ipv4-egress-gateway", "enable-vtep"} {
		if c.Data[name] == "true" {
			return name + " has it"
		}
	}
	return ""
}
