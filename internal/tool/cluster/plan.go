package main

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// The ranges of the whole cluster. The controller manager assigns each node's pod range.
const (
	podRanges     = "10.244.0.0/16,fd00:10:244::/56"
	podRange4     = "10.244.0.0/16"
	podRange6     = "fd00:10:244::/56"
	serviceRanges = "10.96.0.0/16,fd00:10:96::/112"
	apiService    = "10.96.0.1"
	dnsService    = "10.96.0.10"
	apiPort       = 6443
)

// The nodes' own network. Its first address is that of the switch: the gateway, and a client outside the cluster.
var (
	nodeRange4 = netip.MustParsePrefix("10.70.0.0/24")
	nodeRange6 = netip.MustParsePrefix("fd00:10:70::/64")
)

// maxNodes keeps the numbers of nodes in one byte of an address, with room for others.
const maxNodes = 100

// noCNI is for tests of recipes: nothing connects the cluster's pods, and it has the images of the CNIs that can be
// installed.
const noCNI = "none"

// Ways to connect pods, and kube-proxy's modes.
var (
	cnis = []string{"bridge", "ptp", "flannel-vxlan", "flannel-host-gw", kubeRouter,
		"cilium-vxlan", "cilium-native", "cilium-native-legacy", "cilium-native-dsr"}
	proxies = []string{"iptables", "nftables"}
)

// request is what the user asked for.
type request struct {
	Name  string
	Nodes int
	CNI   string
	// Proxy is the mode of kube-proxy, "" without kube-proxy.
	Proxy  string
	Images []string
	// Policies makes kube-router's firewall enforce NetworkPolicies, in addition to a CNI that does not.
	Policies bool
	// DaemonCPUs confine the control plane, kubelets and container runtimes, PodCPUs the pods; lists as in cpuset.cpus,
	// "" for every CPU.
	DaemonCPUs, PodCPUs string
	// Keep keeps a cluster that fails to start, so that it can be examined.
	Keep bool
}

// defaultProxy returns the mode of kube-proxy if none is requested; Cilium replaces kube-proxy.
func (r request) defaultProxy() string {
	if r.replacesProxy() {
		return ""
	}
	return "iptables"
}

// enforces reports whether the CNI enforces NetworkPolicies itself.
func (r request) enforces() bool { return r.CNI == kubeRouter || strings.HasPrefix(r.CNI, cilium) }

func (r request) replacesProxy() bool { return strings.HasPrefix(r.CNI, cilium) }

// has reports whether the cluster has the part that a component or an image is for. "" is for every cluster.
func (r request) has(what string) bool {
	switch what {
	case kubeRouter:
		return r.Policies || r.CNI == kubeRouter
	case kubeProxy:
		return r.Proxy != ""
	case resolver:
		return r.CNI != noCNI // its pods would wait for a network
	}
	return r.CNI == noCNI || strings.HasPrefix(r.CNI, what)
}

var goodName = regexp.MustCompile(`^[a-z][a-z0-9]{0,15}$`)

// check reports everything that is wrong with a request at once.
func (r request) check() error {
	var faults []error
	if !goodName.MatchString(r.Name) {
		faults = append(faults, fmt.Errorf("name %q: want up to 16 small letters and digits, a letter first", r.Name))
	}
	if r.Nodes < 1 || r.Nodes > maxNodes {
		faults = append(faults, fmt.Errorf("nodes %d: want 1 to %d", r.Nodes, maxNodes))
	}
	if !slices.Contains(cnis, r.CNI) && r.CNI != noCNI {
		faults = append(faults, fmt.Errorf("CNI %q: want one of %s, %s", r.CNI, strings.Join(cnis, ", "), noCNI))
	}
	if r.replacesProxy() {
		if r.Proxy != "" {
			faults = append(faults, fmt.Errorf("proxy mode %q: %s replaces kube-proxy, ask for no mode", r.Proxy, r.CNI))
		}
	} else if !slices.Contains(proxies, r.Proxy) {
		faults = append(faults, fmt.Errorf("proxy mode %q: want one of %s", r.Proxy, strings.Join(proxies, ", ")))
	}
	if r.Policies && r.enforces() {
		faults = append(faults, fmt.Errorf("policies: %s enforces NetworkPolicies itself", r.CNI))
	}
	for _, l := range []string{r.DaemonCPUs, r.PodCPUs} {
		if _, err := number.ParseCPUs(l); l != "" && err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// node is one machine of the cluster.
type node struct {
	Name         string
	Addr4, Addr6 netip.Addr
	Zone         string
	// ControlPlane means that it runs etcd, the API server, the scheduler and the controller manager as well.
	ControlPlane bool
}

// nodes returns n1, n2 ...: n1 has the control plane, and the last one is in another zone than the others.
func (r request) nodes() []node {
	all := make([]node, r.Nodes)
	for i := range all {
		all[i] = node{
			Name: fmt.Sprintf("n%d", i+1), Zone: "zone-a", ControlPlane: i == 0,
			Addr4: host(nodeRange4, byte(11+i)), Addr6: host(nodeRange6, byte(11+i)),
		}
	}
	if len(all) > 2 {
		all[len(all)-1].Zone = "zone-b"
	}
	return all
}

// host returns the address of a prefix with the given last byte.
func host(p netip.Prefix, last byte) netip.Addr {
	b := p.Addr().AsSlice()
	b[len(b)-1] = last
	a, _ := netip.AddrFromSlice(b) // the length is unchanged
	return a
}

// processName returns the name of the process of a node (or of the switch, "sw") of a cluster, and of its cgroups.
func processName(cluster, node string) string { return "cnib-e2e-" + cluster + "-" + node }

// switchNetwork returns the commands for `ip -batch` in the switch's namespace; pids are the nodes' processes.
func switchNetwork(nodes []node, pids map[string]int) string {
	var b strings.Builder
	fmt.Fprintln(&b, "link set lo up\nlink add br0 type bridge")
	fmt.Fprintf(&b, "addr add %v/%d dev br0\n", host(nodeRange4, 1), nodeRange4.Bits())
	fmt.Fprintf(&b, "addr add %v/%d dev br0 nodad\nlink set br0 up\n", host(nodeRange6, 1), nodeRange6.Bits())
	for _, n := range nodes {
		fmt.Fprintf(&b, "link add %s type veth peer name eth0 netns %d\n", n.Name, pids[n.Name])
		fmt.Fprintf(&b, "link set %s master br0 up\n", n.Name)
	}
	return b.String()
}

// nodeNetwork returns the commands for a node, which run after the switch's.
func nodeNetwork(n node) string {
	var b strings.Builder
	fmt.Fprintln(&b, "link set lo up")
	fmt.Fprintf(&b, "addr add %v/%d dev eth0\n", n.Addr4, nodeRange4.Bits())
	fmt.Fprintf(&b, "addr add %v/%d dev eth0 nodad\nlink set eth0 up\n", n.Addr6, nodeRange6.Bits())
	fmt.Fprintf(&b, "route add default via %v\n", host(nodeRange4, 1))
	fmt.Fprintf(&b, "route add ::/0 via %v\n", host(nodeRange6, 1))
	return b.String()
}

// podRoutes returns the routes of one node to the pods of the others, for plugins that add none themselves.
func podRoutes(self node, others []node, podCIDRs map[string][]netip.Prefix) string {
	var b strings.Builder
	for _, o := range others {
		if o.Name == self.Name {
			continue
		}
		for _, p := range podCIDRs[o.Name] {
			via := o.Addr4
			if p.Addr().Is6() {
				via = o.Addr6
			}
			fmt.Fprintf(&b, "route add %v via %v\n", p, via)
		}
	}
	return b.String()
}

// parseTarget splits the target of a signal into node and daemon.
func parseTarget(target string) (node, daemon string) {
	if target == "apiserver" {
		return "n1", "kube-apiserver"
	}
	node, daemon, found := strings.Cut(target, "/")
	if !found {
		daemon = "kubelet"
	}
	return node, daemon
}

// reservedCPUs returns the CPUs of a machine that are not for pods, "" if pods may use every CPU. Kubelets require one.
func reservedCPUs(online, pods string) (string, error) {
	if pods == "" {
		return "", nil
	}
	have, err1 := number.ParseCPUs(online)
	want, err2 := number.ParseCPUs(pods)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	for _, n := range want {
		if !slices.Contains(have, n) {
			return "", fmt.Errorf("CPUs of pods %s: the machine has %s", pods, online)
		}
	}
	left := slices.DeleteFunc(have, func(n int) bool { return slices.Contains(want, n) })
	if len(left) == 0 {
		return "", fmt.Errorf("CPUs of pods %s: none of %s is left for the rest", pods, online)
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(left), " ", ","), "[]"), nil
}
