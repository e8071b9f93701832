// Package netstate holds what can be seen of the network from one place: a pod, or a node through a host-network pod.
//
// `cnibench look` writes the document. What it could not see is listed with the reason, so that unseen never means
// absent.
package netstate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// maxDocument bounds a document in bytes: a node with a thousand pods needs less than one MiB.
const maxDocument = 16 << 20

// State is the network as one process sees it.
type State struct {
	// Host is the hostname: of the pod, or of the node.
	Host string `json:"host,omitempty"`
	// BootID identifies the kernel since it started: two places with the same one share a kernel.
	BootID string `json:"bootID,omitempty"`
	// Namespace is the inode of the network namespace.
	Namespace uint64 `json:"namespace,omitempty"`
	// Machine has facts of the kernel and the hardware under the names of package facts.
	Machine map[string]string `json:"machine,omitempty"`
	// Devices are in the order of their index. Routes are those of the main table that the kernel did not add itself.
	Devices []Device `json:"devices,omitempty"`
	Routes  []Route  `json:"routes,omitempty"`
	// Rules are the entries of the routing policy that the kernel did not add itself.
	Rules []Rule `json:"rules,omitempty"`
	// Neighbours counts the entries of ARP and neighbour discovery, absent if they could not be counted.
	Neighbours *int `json:"neighbours,omitempty"`
	// Conntrack is the use of connection tracking in this namespace.
	Conntrack *Conntrack `json:"conntrack,omitempty"`
	// Chains counts the netfilter chains that are not built in, of iptables-nft and of nftables; nil if they could
	// not be listed.
	Chains *Chains `json:"chains,omitempty"`
	// Programs are the BPF programs on devices; nil if they could not be listed.
	Programs *[]Program `json:"programs,omitempty"`
	// Conflists are the files of /etc/cni/net.d, in the order in which a runtime reads them.
	Conflists []Conflist `json:"conflists,omitempty"`
	// ProxyMode is kube-proxy's answer on 127.0.0.1:10249/proxyMode.
	ProxyMode string `json:"proxyMode,omitempty"`
	// CPU is the CPU limit of this place's cgroup, nil if unknown.
	CPU *CPU `json:"cpu,omitempty"`
	// Unproven lists what could not be read.
	Unproven []Unproven `json:"unproven,omitempty"`
}

// Unproven is one thing that could not be seen.
type Unproven struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func (u Unproven) String() string { return u.What + ": " + u.Why }

// Device is one network device.
type Device struct {
	Name string `json:"name"`
	// Kind is the kernel's: veth, bridge, vxlan, ipip, wireguard, macvlan, ipvlan, netkit, ... or "device".
	Kind string `json:"kind"`
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up"`
	// Master is the bridge of which it is a port.
	Master    string         `json:"master,omitempty"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// VNI and Port are those of a VXLAN device. External means that the device takes the tunnel's addresses from the
	// packet's metadata.
	VNI      int  `json:"vni,omitempty"`
	Port     int  `json:"port,omitempty"`
	External bool `json:"external,omitempty"`
	// SpeedMbit is a physical device's speed by its driver, in Mbit/s; absent if unknown.
	SpeedMbit int `json:"speedMbit,omitempty"`
	// Segmentation lists the segmentation offloads: with them, packets larger than the MTU cross the device.
	Segmentation []string `json:"segmentation,omitempty"`
}

// Route is one route.
type Route struct {
	To     netip.Prefix `json:"to"`
	Via    *netip.Addr  `json:"via,omitempty"`
	Device string       `json:"device,omitempty"`
	// MTU is the route's own, 0 for the device's.
	MTU int `json:"mtu,omitempty"`
	// Blackhole means that the route drops packets, as for the addresses of a CNI's own block.
	Blackhole bool `json:"blackhole,omitempty"`
}

// Rule is one rule of the routing policy.
type Rule struct {
	IPv6     bool `json:"ipv6,omitempty"`
	Priority int  `json:"priority"`
	// Words are the entry in the format of `ip rule`, without its priority.
	Words string `json:"words"`
}

// Conntrack counts tracked connections of a namespace.
type Conntrack struct {
	Entries int `json:"entries"`
}

// Chains counts chains by their origin.
type Chains struct {
	// Prefixes counts chains by the beginning of their name: KUBE-, cali-, CILIUM_, FLANNEL-, CNI-.
	Prefixes map[string]int `json:"prefixes,omitempty"`
	// Tables are the tables of nftables: "ip kube-proxy".
	Tables []string `json:"tables,omitempty"`
	// Services counts the chains of iptables that begin with KUBE-SVC-: one for each port of a Service.
	Services int `json:"services,omitempty"`
}

// Program is a BPF program on a device.
type Program struct {
	Device string `json:"device"`
	// Hook is "tcx ingress", "tcx egress", "tc ingress", "tc egress", "xdp", "netkit primary" or "netkit peer".
	Hook string `json:"hook"`
	Name string `json:"name"`
}

// Conflist is one file of CNI configuration.
type Conflist struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// CPU is the CPU limit of a cgroup.
type CPU struct {
	// Limit is the quota in CPUs, absent without one.
	Limit *float64 `json:"limit,omitempty"`
	// Periods counts the periods of the limit, Throttled those in which it stopped the group.
	Periods   int64 `json:"periods,omitempty"`
	Throttled int64 `json:"throttled,omitempty"`
}

// Parse reads the document of `cnibench look`. It fails if the document is empty or too large.
func Parse(b []byte) (State, error) {
	if len(b) > maxDocument {
		return State{}, fmt.Errorf("document of look has %d bytes, more than %d", len(b), maxDocument)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("document of look: %w", err)
	}
	if s.BootID == "" && len(s.Devices) == 0 && len(s.Unproven) == 0 {
		return State{}, errors.New("document of look is empty")
	}
	return s, nil
}

// Device returns the device called name, false if there is none.
func (s State) Device(name string) (Device, bool) {
	return each.First(s.Devices, func(d Device) bool { return d.Name == name })
}

// Way returns the device of the default route, and the MTU of the route or else of the device. Without such a route
// it returns the only device other than lo, false if there are none or several.
func (s State) Way() (Device, int, bool) {
	for _, r := range s.Routes {
		if r.To.Bits() != 0 || r.Blackhole {
			continue
		}
		if d, ok := s.Device(r.Device); ok {
			if r.MTU > 0 {
				return d, r.MTU, true
			}
			return d, d.MTU, true
		}
	}
	others := each.Where(s.Devices, func(d Device) bool { return d.Name != "lo" })
	if len(others) != 1 {
		return Device{}, 0, false
	}
	return others[0], others[0].MTU, true
}

// Missing returns the reason why the thing called what could not be read, "" if it is not listed as unproven.
func (s State) Missing(what string) string {
	u, _ := each.First(s.Unproven, func(u Unproven) bool { return u.What == what })
	return u.Why
}

// prefixes are the prefixes by which chains are counted, each with its owner.
var prefixes = []struct{ Prefix, Owner string }{
	{"KUBE-", "kube-proxy and kubelet"}, {"cali-", "calico"}, {"cali:", "calico"}, {"CILIUM_", "cilium"}, {"FLANNEL-", "flannel"},
	{"CNI-", "the CNI plugins"}, {"WEAVE-", "weave"}, {"ANTREA-", "antrea"}, {"AWS-", "the AWS VPC CNI"}, {"ISTIO_", "istio"},
}

// ProxyModes returns the modes of kube-proxy with rules here. device means that the device of ipvs mode exists. kubelet
// too has chains that begin with KUBE-, so only those of Services count.
func (c *Chains) ProxyModes(device bool) []string {
	modes := []string{}
	if device {
		return append(modes, "ipvs") // which also has chains of the other modes
	}
	if slices.Contains(c.Tables, "ip kube-proxy") || slices.Contains(c.Tables, "ip6 kube-proxy") {
		modes = append(modes, "nftables")
	}
	if c.Services > 0 {
		modes = append(modes, "iptables")
	}
	return modes
}

// Count counts chains by the prefixes of their names, and those of Services.
func Count(chains []string) *Chains {
	c := &Chains{Prefixes: map[string]int{}}
	for _, name := range chains {
		if strings.HasPrefix(name, "KUBE-SVC-") {
			c.Services++
		}
		for _, p := range prefixes {
			if strings.HasPrefix(name, p.Prefix) {
				c.Prefixes[p.Prefix]++
				break
			}
		}
	}
	return c
}
