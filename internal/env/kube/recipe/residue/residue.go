// Package residue finds leftovers of an earlier CNI: configuration, devices, chains, tables, BPF programs and pins on
// the nodes, and custom resources, annotations and taints in the API. Deleting a CNI's manifest removes only its pods,
// and the next CNI runs on top of the rest.
//
// Judge is pure. It takes the observations of package recipe (Cluster) and returns each leftover with its owner and the
// command that removes it. What could not be seen is listed, so that nothing unseen counts as clean.
package residue

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// Owners of leftovers, as in Leftover and Cluster.InForce.
const (
	Flannel   = "flannel"
	Canal     = "canal"
	Calico    = "calico"
	Cilium    = "cilium"
	KubeProxy = "kube-proxy"
	kindnet   = "kindnet"
	weave     = "weave"
	antrea    = "antrea"
	Multus    = "multus"
	Plugins   = "the CNI plugins"
)

// Cluster has the observations of a cluster.
type Cluster struct {
	Nodes []Node
	// Definitions are the names of the cluster's CustomResourceDefinitions.
	Definitions []string
	// InForce are the owners that run now; their objects are not leftovers.
	InForce []string
	// Unseen lists what could not be read from the API, with the reason.
	Unseen []string
}

// Node has the observations of one node.
type Node struct {
	Name    string
	Address netip.Addr
	PodCIDR netip.Prefix
	// Annotations and Taints are the keys of the Node object's annotations and taints.
	Annotations, Taints []string
	// Looked is true if the node itself was inspected; otherwise Sight and Files are empty.
	Looked bool
	Sight  netstate.State
	// Files are the files and directories that the function Files has found on the node.
	Files []string
	// Unseen lists what could not be inspected on the node, with the reason.
	Unseen []string
}

// Leftover is something that an earlier CNI left on a node or in the API.
type Leftover struct {
	// Node is the node's name, "" for the cluster.
	Node string `json:"node,omitempty"`
	// Owner is the CNI that left it. If several CNIs may have left it, Owner lists them: "flannel or calico".
	Owner string `json:"owner"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	// Harm is its effect on the next CNI. Remove is the command that removes it, on its node or with kubectl.
	Harm   string `json:"harm"`
	Remove string `json:"remove"`
}

func (l Leftover) String() string {
	return fmt.Sprintf("%s: %s %s, left by %s", cmp.Or(l.Node, "cluster"), l.Kind, l.Name, l.Owner)
}

// Judge returns the leftovers in the observations c, sorted by node, then by owner.
func Judge(c Cluster) []Leftover {
	j := &judge{cluster: c}
	if slices.Contains(c.InForce, Canal) { // canal is Calico's policy over flannel
		j.cluster.InForce = slices.Concat(c.InForce, []string{Calico, Flannel})
	}
	for _, d := range c.Definitions {
		j.addLeftover("", "definition", d, definitions)
	}
	for _, n := range c.Nodes {
		j.judgeNode(n)
	}
	slices.SortStableFunc(j.left, func(a, b Leftover) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(j.left)
}

// judge collects leftovers.
type judge struct {
	cluster Cluster
	left    []Leftover
}

// sign identifies leftovers by their names. An asterisk in a name stands for any text.
type sign struct {
	names, owners []string
	harm          string
	// remove is the command that removes the leftover; %s is replaced by its name.
	remove string
}

func (s sign) matchesName(name string) bool {
	return slices.ContainsFunc(s.names, func(n string) bool {
		before, after, any := strings.Cut(n, "*")
		return n == name || any && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	})
}

// addLeftover finds the first of signs that matches name, adds a leftover of that sign, and returns it. It returns nil and
// adds nothing if no sign matches, or if an owner of the sign is in force.
func (j *judge) addLeftover(node, kind, name string, signs []sign) *Leftover {
	for _, s := range signs {
		if !s.matchesName(name) {
			continue
		}
		if slices.ContainsFunc(s.owners, func(o string) bool { return slices.Contains(j.cluster.InForce, o) }) {
			return nil
		}
		remove := strings.ReplaceAll(s.remove, "%s", name)
		j.left = append(j.left, Leftover{Node: node, Owner: strings.Join(s.owners, " or "), Kind: kind, Name: name, Harm: s.harm, Remove: remove})
		return &j.left[len(j.left)-1]
	}
	return nil
}

func (j *judge) judgeNode(n Node) {
	j.addAnnotations(n)
	for _, t := range n.Taints {
		j.addLeftover(n.Name, "taint", t, taintSigns(n.Name))
	}
	for _, f := range n.Files {
		j.addFile(n.Name, f)
	}
	if n.Looked {
		j.addNodeState(n)
	}
}

// addNodeState adds the leftovers among the node's conflists, devices, chains, tables, BPF programs, routes and routing rules.
func (j *judge) addNodeState(n Node) {
	for _, c := range n.Sight.Conflists {
		j.addFile(n.Name, conflistDir+c.File)
	}
	for _, d := range n.Sight.Devices {
		if d.Name == "tunl0" && len(d.Addresses) == 0 {
			continue // the kernel adds it when it loads the module
		}
		if d.Name == "cilium_net" {
			continue // it disappears with cilium_host, its other end
		}
		if (strings.HasPrefix(d.Name, "lxc") || strings.HasPrefix(d.Name, "cali")) && d.Kind != "veth" && d.Kind != "netkit" {
			continue // LXC too has devices with this prefix
		}
		if j.addLeftover(n.Name, "device", d.Name, devices) == nil && d.Kind == "veth" && slices.ContainsFunc(d.Addresses, func(a netip.Prefix) bool { return n.PodCIDR.IsValid() && n.PodCIDR.Contains(a.Addr()) }) {
			j.addLeftover(n.Name, "device", d.Name, gateways)
		}
	}
	if c := n.Sight.Chains; c != nil {
		for _, prefix := range slices.Sorted(maps.Keys(c.Prefixes)) {
			if c.Prefixes[prefix] > 0 {
				j.addLeftover(n.Name, "iptables chains", prefix, chains)
			}
		}
		for _, t := range c.Tables {
			j.addLeftover(n.Name, "nftables table", t, tables)
		}
	}
	if p := n.Sight.Programs; p != nil {
		for _, q := range *p {
			j.addProgram(n.Name, q)
		}
	}
	j.addRoutes(n)
	for _, r := range n.Sight.Rules {
		family := ""
		if r.IPv6 {
			family = " -6"
		}
		if l := j.addLeftover(n.Name, "routing rule", r.Words, rules); l != nil {
			l.Name = fmt.Sprintf("%d: %s", r.Priority, r.Words)
			l.Remove = strings.NewReplacer("%6", family, "%p", strconv.Itoa(r.Priority)).Replace(l.Remove)
		}
	}
}

// addAnnotations adds the leftovers among a node's annotations. All annotations of one sign are one leftover.
func (j *judge) addAnnotations(n Node) {
	for _, s := range annotations {
		var keys []string
		for _, a := range slices.Sorted(slices.Values(n.Annotations)) {
			if s.matchesName(a) {
				keys = append(keys, a)
			}
		}
		if len(keys) == 0 {
			continue
		}
		s.remove = "kubectl annotate node " + n.Name + " " + strings.Join(keys, "- ") + "-"
		j.addLeftover(n.Name, "annotation", s.names[0], []sign{s})
	}
}

// backup is the suffix of configuration files that Cilium renamed.
const backup = ".cilium_bak"

func (j *judge) addFile(node, name string) {
	if name == "/run/cilium/deleteQueue" {
		return // the plugin creates it again when a runtime detaches the last pod, and only Cilium reads it
	}
	if strings.HasPrefix(name, conflistDir) && strings.HasSuffix(name, backup) {
		j.addLeftover(node, "file", name, []sign{{[]string{name}, []string{Cilium}, "configuration of an earlier CNI, which Cilium renamed", rmFile}})
		return
	}
	j.addLeftover(node, "file", name, files)
}

// addProgram adds a BPF program if it is a leftover. It skips a program on a CNI's device, because it is removed with the
// device.
func (j *judge) addProgram(node string, q netstate.Program) {
	if slices.ContainsFunc(devices, func(s sign) bool { return s.matchesName(q.Device) }) {
		return
	}
	before := len(j.left)
	j.addLeftover(node, "BPF program", q.Name, programs)
	if len(j.left) > before {
		l := &j.left[len(j.left)-1]
		l.Name = fmt.Sprintf("%s on %s %s", q.Name, q.Device, q.Hook)
		l.Remove = detachCommand(q)
	}
}

// detachCommand returns the command that detaches a program from its device, or "restart the node" if there is none.
func detachCommand(q netstate.Program) string {
	hook, way, _ := strings.Cut(q.Hook, " ")
	switch hook {
	case "tc":
		return "tc filter del dev " + q.Device + " " + way
	case "xdp":
		return "ip link set dev " + q.Device + " xdp off"
	case "tcx": // only its pin keeps it loaded
		return fmt.Sprintf("rm -f /sys/fs/bpf/cilium/devices/%s/links/%s", q.Device, q.Name)
	}
	return "restart the node"
}

// addRoutes adds the node's blackhole routes and its routes to the pods of other nodes, unless a CNI that makes such routes
// is in force.
func (j *judge) addRoutes(n Node) {
	blackhole := []sign{{names: []string{"*"}, owners: []string{Calico}, harm: "packets to these pods are dropped", remove: "ip route del blackhole %s"}}
	for _, r := range n.Sight.Routes {
		if r.Blackhole {
			j.addLeftover(n.Name, "route", r.To.String(), blackhole)
			continue
		}
		for _, other := range j.cluster.Nodes {
			if other.Name == n.Name || r.Via == nil || *r.Via != other.Address || r.To != other.PodCIDR {
				continue
			}
			j.addLeftover(n.Name, "route", r.To.String(), []sign{{names: []string{"*"}, owners: []string{Flannel, Cilium, Calico, Plugins},
				harm: "packets to these pods pass by the next CNI", remove: fmt.Sprintf("ip route del %s via %s", r.To, r.Via)}})
		}
	}
}

// AllUnseen lists what could not be inspected, in the API and on each node.
func (c Cluster) AllUnseen() []string {
	list := slices.Clone(c.Unseen)
	var dark []string
	for _, n := range c.Nodes {
		if !n.Looked && len(n.Unseen) == 0 {
			dark = append(dark, n.Name)
		}
	}
	if len(dark) > 0 {
		list = append(list, "devices, rules, BPF and files were not inspected on "+strings.Join(dark, ", "))
	}
	for _, n := range c.Nodes {
		for _, u := range n.Unseen {
			list = append(list, n.Name+": "+u)
		}
		for _, u := range n.Sight.Unproven {
			list = append(list, n.Name+": "+u.String())
		}
	}
	return list
}
