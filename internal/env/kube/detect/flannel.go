package detect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Annotations that flanneld writes on its node when it runs.
const (
	flannelBackend = "flannel.alpha.coreos.com/backend-type"
	flannelData    = "flannel.alpha.coreos.com/backend-data"
)

// NetConf is flannel's own configuration, net-conf.json, as far as it decides about the dataplane.
type NetConf struct {
	Network, IPv6Network string
	EnableNFTables       bool
	// Backend is its Type, "vxlan" if none is given.
	Backend string
	// VNI and Port are of a tunnel, MTU that of its device; 0 is flannel's default.
	VNI, Port, MTU int
	DirectRouting  bool
}

// ParseNetConf reads net-conf.json.
func ParseNetConf(text string) (NetConf, error) {
	var f struct {
		Network, IPv6Network string
		EnableNFTables       bool
		Backend              struct {
			Type           string
			VNI, Port, MTU int
			ListenPort     int
			DirectRouting  bool
		}
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return NetConf{}, fmt.Errorf("net-conf.json: %w", err)
	}
	if f.Network == "" && f.IPv6Network == "" && f.Backend.Type == "" {
		return NetConf{}, errors.New("net-conf.json: has neither Network nor Backend")
	}
	b := f.Backend
	c := NetConf{Network: f.Network, IPv6Network: f.IPv6Network, EnableNFTables: f.EnableNFTables, Backend: strings.ToLower(b.Type),
		VNI: b.VNI, Port: b.Port, MTU: b.MTU, DirectRouting: b.DirectRouting}
	if c.Backend == "" {
		c.Backend = "vxlan"
	}
	if b.ListenPort != 0 {
		c.Port = b.ListenPort
	}
	return c, nil
}

// encapsulation is the backend's as claims spell it; "" for one that we know nothing of.
func (c NetConf) encapsulation() string {
	e := map[string]string{"vxlan": "vxlan", "host-gw": "none", "wireguard": "wireguard", "wireguard-native": "wireguard", "ipip": "ipip", "ipsec": "ipsec", "alloc": "none", "udp": "udp"}[c.Backend]
	if c.DirectRouting && (e == "vxlan" || e == "ipip") {
		return e + " between subnets"
	}
	return e
}

// flannel judges net-conf.json, and the annotations that flanneld writes about the backend that it runs.
func (d *detective) flannel(w Workload) { d.flannelIn(w.Namespace) }

func (d *detective) flannelIn(namespace string) {
	c, ok := d.configMap(namespace, "kube-flannel-cfg", "rke2-flannel-config", "flannel-config")
	if !ok {
		d.flannelByAnnotation()
		return
	}
	conf, good := d.netConf(c)
	if !good {
		d.flannelByAnnotation()
		return
	}
	if r, ok := d.configured([]document{{c.String(), netConfMap("kube-flannel-cfg", c.Data["net-conf.json"], c.Data)}}); ok {
		d.adopt(r)
	}
	d.flannelClaims(flannel, conf, c.String())
}

// netConf reads the net-conf.json of a ConfigMap.
func (d *detective) netConf(c ConfigMap) (NetConf, bool) {
	conf, err := ParseNetConf(c.Data["net-conf.json"])
	if err != nil {
		d.doubt("%s: %v", c, err)
	}
	return conf, err == nil
}

// netConfMap is a ConfigMap that holds net-conf.json.
func netConfMap(name, netConf string, data map[string]string) map[string]any {
	all := map[string]any{"net-conf.json": netConf}
	if m := data["veth_mtu"]; m != "" {
		all["veth_mtu"] = m
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": all}
}

// flannelByAnnotation judges flannel where no ConfigMap can be read, or there is none: K3s has it built in.
func (d *detective) flannelByAnnotation() {
	backend := d.backendOnNodes()
	if backend == "" {
		d.Title = "flannel with a backend that could not be read"
		d.unproven("flannel's backend: neither its ConfigMap nor its annotations on the nodes were read")
		return
	}
	conf, err := ParseNetConf(`{"Backend":{"Type":` + strconv.Quote(backend) + `}}`)
	if err != nil {
		d.doubt("the nodes' annotation %s is %q", flannelBackend, backend)
		return
	}
	const source = "annotations of the nodes"
	if r, ok := d.configured([]document{{source, netConfMap("kube-flannel-cfg", `{"Backend":{"Type":`+strconv.Quote(backend)+`}}`, nil)}}); ok {
		d.adopt(r)
	}
	d.flannelClaims(flannel, conf, source)
}

// backendOnNodes is the backend that flanneld says it runs, "" if the nodes say nothing or differ.
func (d *detective) backendOnNodes() string {
	by := map[string]string{}
	for _, n := range d.Nodes {
		if b := n.Annotations[flannelBackend]; b != "" {
			by[n.Name] = strings.ToLower(b)
		}
	}
	groups, distinct := perNode(by)
	switch len(distinct) {
	case 0:
		return ""
	case 1:
		return distinct[0]
	}
	d.doubt("flannel's backend differs between the nodes: %s", strings.Join(groups, "; "))
	return ""
}

// flannelClaims says encapsulation, encryption and MTU, from the backend that runs where that is known.
func (d *detective) flannelClaims(component string, conf NetConf, source string) {
	if b := d.backendOnNodes(); b != "" {
		d.inForce(component, "Backend.Type", Claim{b, "annotation " + flannelBackend + " of the nodes"})
		if b != conf.Backend {
			d.backendOverrides(component, b)
			conf.Backend, source = b, "annotations of the nodes"
		}
	}
	if vni := d.vniOnNodes(); vni != 0 && conf.Backend == "vxlan" {
		d.inForce(component, "VNI", Claim{fmt.Sprint(vni), "annotation " + flannelData + " of the nodes"})
	}
	if e := conf.encapsulation(); e != "" {
		d.Encapsulation = Claim{e, source}
	}
	d.Encryption = Claim{"none", source}
	switch conf.Backend {
	case "wireguard", "wireguard-native":
		d.Encryption = Claim{"wireguard", source}
	case "ipsec":
		d.Encryption = Claim{"ipsec", source}
	}
	if conf.MTU > 0 {
		d.MTU = Claim{fmt.Sprint(conf.MTU), source}
	}
	if conf.EnableNFTables {
		d.But = append(d.But, "flannel's own rules are nftables'")
	}
}

// backendOverrides makes the profile that of the backend which runs.
func (d *detective) backendOverrides(component, backend string) {
	if component == canal {
		if r, ok := d.configured([]document{{canal, netConfMap("canal-config", `{"Backend":{"Type":`+strconv.Quote(backend)+`}}`, nil)}}); ok {
			d.measured(r)
		}
		return
	}
	if r, ok := d.configured([]document{{flannel, netConfMap("kube-flannel-cfg", `{"Backend":{"Type":`+strconv.Quote(backend)+`}}`, nil)}}); ok {
		d.measured(r)
	}
}

// vniOnNodes is the VNI that flanneld says it uses, 0 if nodes do not say.
func (d *detective) vniOnNodes() int {
	for _, n := range d.Nodes {
		var data struct{ VNI int }
		if json.Unmarshal([]byte(n.Annotations[flannelData]), &data) == nil && data.VNI != 0 {
			return data.VNI
		}
	}
	return 0
}

// canal judges flannel's part; Calico's is the same in all of its modes.
func (d *detective) canal(w Workload) {
	c, ok := d.configMap(w.Namespace, "canal-config", "rke2-canal-config")
	conf, good := NetConf{}, false
	if ok {
		conf, good = d.netConf(c)
	} else {
		d.unproven("canal's mode as configured: its ConfigMap in %s was not read", w.Namespace)
	}
	if good {
		if r, ok := d.configured([]document{{c.String(), netConfMap(c.Name, c.Data["net-conf.json"], c.Data)}}); ok {
			d.adopt(r)
		}
		if m := c.Data["veth_mtu"]; m != "" && m != "0" {
			d.MTU = Claim{m, c.String()}
		}
		d.flannelClaims(canal, conf, c.String())
		return
	}
	if b := d.backendOnNodes(); b != "" {
		d.backendOverrides(canal, b)
		d.flannelClaims(canal, NetConf{Backend: b}, "annotations of the nodes")
	}
}
