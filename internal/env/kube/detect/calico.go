package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/config"
)

// detectCalico sets the profile and settings of Calico from its Installation, FelixConfiguration and IPPools. If there is no
// Installation, it uses the environment variables of the DaemonSet w instead.
func (d *detective) detectCalico(w workloadSpec) {
	if w.Name == "calico-vpp-node" {
		d.Title = "Calico with VPP: no profile describes it"
		return
	}
	var objects []config.Input
	inst := d.defaultObject("Installation")
	if inst != nil {
		objects = append(objects, objectInput("Installation default", inst))
	} else {
		objects = append(objects, w.configInput())
	}
	if felix := d.defaultObject("FelixConfiguration"); felix != nil {
		objects = append(objects, objectInput("FelixConfiguration default", felix))
	} else {
		d.addUnproven("Felix's settings: no FelixConfiguration default was read")
	}
	pools := d.enabledPools()
	for _, p := range pools {
		objects = append(objects, objectInput("IPPool "+stringField(p, "metadata", "name"), p))
	}
	if len(pools) == 0 {
		d.addUnproven("the encapsulation of the pools in force: no IPPool was read")
	}
	if inst == nil && len(pools) == 0 && len(d.objects("FelixConfiguration")) == 0 {
		d.addDoubt("only the environment of %s shows the mode", w)
	}
	r, ok := d.judgeObjects(objects...)
	if !ok {
		return
	}
	d.adoptReport(r)
	d.setCalicoInForce(inst)
	if field(inst, "spec", "calicoNetwork", "linuxPodInterfaceType") == "Netkit" {
		d.addSetting(calico, podDeviceSetting, configClaim{"netkit", "Installation default"}, configClaim{})
	}
	for _, c := range d.firstConflists() {
		if p := c.main(); p.Type == calico && p.DeviceType != "" && d.podDevice() == "" {
			d.addSetting(calico, podDeviceSetting, configClaim{p.DeviceType, c.File + " of " + c.Node}, configClaim{})
		}
	}
}

// podDeviceSetting is the setting of the kind of device that pods get, if it is not the profile's.
const podDeviceSetting = "device of pods"

// podDevice returns the kind of device that the CNI is asked for, "" if it is the profile's.
func (v Verdict) podDevice() string {
	for _, s := range v.Settings {
		if s.Name == podDeviceSetting {
			return s.Asked
		}
	}
	return ""
}

// defaultObject returns the object of a kind that is called "default", or nil if there is none.
func (d *detective) defaultObject(kind string) map[string]any {
	for _, o := range d.objects(kind) {
		if stringField(o, "metadata", "name") == "default" {
			return o
		}
	}
	return nil
}

// enabledPools returns Calico's enabled IPPools, those of IPv4 first. It adds a doubt if IPv4 pools have different
// encapsulations.
func (d *detective) enabledPools() []map[string]any {
	list := slices.DeleteFunc(d.objects("IPPool"), func(p map[string]any) bool { return field(p, "spec", "disabled") == true })
	colons := func(p map[string]any) int { return strings.Count(stringField(p, "spec", "cidr"), ":") } // IPv4 has none
	slices.SortFunc(list, func(a, b map[string]any) int {
		return cmp.Or(min(colons(a), 1)-min(colons(b), 1), strings.Compare(stringField(a, "metadata", "name"), stringField(b, "metadata", "name")))
	})
	modes := map[string]string{}
	for _, p := range list {
		if colons(p) == 0 {
			modes[stringField(p, "metadata", "name")] = poolMode(p)
		}
	}
	if groups, distinct := groupNodes(modes); len(distinct) > 1 {
		d.addDoubt("the pools differ: %s", strings.Join(groups, "; "))
	}
	return list
}

// poolMode returns the encapsulation of an IPPool: "none", or "vxlan" or "ipip", possibly followed by "between subnets".
func poolMode(p map[string]any) string {
	for _, m := range []struct{ key, name string }{{"vxlanMode", "vxlan"}, {"ipipMode", "ipip"}} {
		switch stringField(p, "spec", m.key) {
		case "Always":
			return m.name
		case "CrossSubnet":
			return m.name + " between subnets"
		}
	}
	return "none"
}

// setCalicoInForce compares the pools' encapsulation with the tunnel that the nodes' annotations show. If they agree, it
// records the tunnel as in force; if they differ, it adds a doubt. It also sets the MTU, from the status of the Installation
// inst or from the ConfigMap calico-config.
func (d *detective) setCalicoInForce(inst map[string]any) {
	tunnels := map[string]string{}
	for _, n := range d.Nodes {
		_, vxlan := n.Annotations["projectcalico.org/IPv4VXLANTunnelAddr"]
		_, ipip := n.Annotations["projectcalico.org/IPv4IPIPTunnelAddr"]
		switch {
		case vxlan:
			tunnels[n.Name] = "vxlan"
		case ipip:
			tunnels[n.Name] = "ipip"
		case n.Annotations["projectcalico.org/IPv4Address"] != "":
			tunnels[n.Name] = "none"
		}
	}
	groups, distinct := groupNodes(tunnels)
	claimed, _, _ := strings.Cut(d.Encapsulation.Value, " ")
	switch {
	case len(distinct) == 1 && distinct[0] != claimed && claimed != "":
		d.addDoubt("the pools say %s (%s), the nodes' annotations show the tunnel of %s", d.Encapsulation.Value, d.Encapsulation.Source, distinct[0])
	case len(distinct) == 1 && claimed != "":
		d.setInForce(calico, "tunnel", configClaim{distinct[0], "annotations of the nodes"})
	case len(distinct) > 1:
		d.addDoubt("the nodes' annotations differ: %s", strings.Join(groups, "; "))
	}
	if m := field(inst, "status", "mtu"); m != nil && fmt.Sprint(m) != "0" {
		d.MTU = configClaim{fmt.Sprint(m), "status of Installation default"}
	} else if c, ok := d.configMap("kube-system", "calico-config"); ok && c.Data["veth_mtu"] != "" && c.Data["veth_mtu"] != "0" {
		d.MTU = configClaim{c.Data["veth_mtu"], c.String()}
	}
}
