package lab

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

func TestEveryProfileHasItsDataplane(t *testing.T) {
	var listed []string
	for _, e := range profiles {
		listed = append(listed, e.Profile)
		if _, ok := profile.Lookup(e.Profile); !ok {
			t.Errorf("%s is not in the catalogue", e.Profile)
		}
	}
	for _, name := range profile.Names() {
		if !slices.Contains(listed, name) {
			t.Errorf("%s has no dataplane", name)
		}
	}
	if _, ok := dataplaneOf("no-such"); ok {
		t.Error("dataplaneOf finds a profile that does not exist")
	}
}

// arranged returns node 3 of a profile with so many pods.
func arranged(t *testing.T, name string, pods int) (dataplane.Entry, dataplane.Node) {
	t.Helper()
	e, ok := dataplaneOf(name)
	if !ok {
		t.Fatalf("no profile %q", name)
	}
	n := dataplane.Node{
		Name: "node-3", Addr: netip.MustParsePrefix("172.18.0.13/16"), MTU: 1500, MAC: dataplane.MACOf(2, 0, netip.MustParseAddr("172.18.0.13")),
		Cluster: netip.MustParsePrefix("10.244.0.0/16"),
	}
	e.Arrange(&n, 3, pods)
	return e, n
}

func TestCalicoBlocksHoldTunnelAndPods(t *testing.T) {
	for pods, blocks := range map[int]int{1: 1, 63: 1, 64: 2, 127: 2, 128: 3, 250: 4} {
		for _, name := range []string{"calico-vxlan", "calico-ipip", "calico-ebpf"} {
			_, n := arranged(t, name, pods)
			if len(n.Blocks) != blocks {
				t.Errorf("%s: %d pods take %d blocks, want %d", name, pods, len(n.Blocks), blocks)
			}
			if n.Tunnel.Addr != netip.MustParseAddr("10.244.3.0") || !n.Blocks[0].Contains(n.Tunnel.Addr) {
				t.Errorf("%s: the tunnel has %v, the first block is %v", name, n.Tunnel.Addr, n.Blocks[0])
			}
			last := n.Pods[pods-1].Addr.Addr()
			if !n.Blocks[blocks-1].Contains(last) {
				t.Errorf("%s: the last of %d pods has %v, outside %v", name, pods, last, n.Blocks[blocks-1])
			}
		}
	}
	if _, n := arranged(t, "calico-underlay", 2); n.Tunnel.Device != "" || n.Pods[0].MTU != 1500 {
		t.Errorf("without encapsulation: %+v", n)
	}
}

func TestDeviceNamesHaveTheirForm(t *testing.T) {
	forms := map[string]int{"vlan": 15, "veth": 12, "cali": 15, "lxc": 15, "eni": 14, "knet": 12, "azv": 14}
	prefix := map[string]string{"plugins": "veth", "flannel": "veth", "canal": "cali", "calico": "cali", "cilium": "lxc", "aws": "eni", "kindnet": "knet", "azure": "azv", "kuberouter": "veth"}
	for _, p := range profile.All() {
		_, n := arranged(t, p.Name, 3)
		for _, pod := range n.Pods {
			want := prefix[p.Family]
			switch {
			case p.OnNIC:
				want = ""
			case p.Name == "aws-vpc-branch":
				want = "vlan" // so that rules for eni+ do not match it
			case p.Name == "kindnetd":
				want = "veth" // kind has the plugin ptp
			}
			if len(pod.HostDevice) != forms[want] || !strings.HasPrefix(pod.HostDevice, want) {
				t.Errorf("%s: device %q, want %s and %d characters", p.Name, pod.HostDevice, want, forms[want])
			}
		}
	}
}

func TestNotServed(t *testing.T) {
	refused := map[string]int{"aws-vpc-branch": 1, "bridge": 2, "ptp": 1, "macvlan": 7, "ipvlan": 7, "sriov": 3, "raw": len(plan.Paths) - 2}
	for _, e := range profiles {
		got := 0
		for _, p := range plan.Paths {
			if e.NotServed(p) != "" {
				got++
			}
		}
		if got != refused[e.Profile] {
			t.Errorf("%s refuses %d paths, want %d", e.Profile, got, refused[e.Profile])
		}
	}
}

// TestWhoseMACAddress: the MAC address distinguishes the three dataplanes that have no device on the node.
func TestWhoseMACAddress(t *testing.T) {
	for name, node := range map[string]bool{"macvlan": false, "ipvlan": true, "sriov": false} {
		_, n := arranged(t, name, 2)
		for _, p := range n.Pods {
			if (p.MAC.String() == n.MAC.String()) != node || p.HostDevice != "" || !n.Addr.Contains(p.Addr.Addr()) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
}

func TestRulesNameWhatTheNodeHas(t *testing.T) {
	other := dataplane.Node{Addr: netip.MustParsePrefix("172.18.0.14/16")}
	e, n := arranged(t, "calico-vxlan", 2)
	r := e.Rules(n, []dataplane.Node{other})
	c := r.Calico
	if r.Flannel != nil || c == nil || !c.VXLAN || !slices.Equal(c.Pools, []netip.Prefix{n.Cluster}) {
		t.Fatalf("calico-vxlan: %+v", r)
	}
	if !slices.Equal(c.NodeAddrs, []netip.Addr{n.Addr.Addr(), n.Tunnel.Addr}) || !slices.Equal(c.Peers, []netip.Addr{other.Addr.Addr()}) {
		t.Errorf("addresses of node and peers: %+v", c)
	}
	if len(c.Devices) != 2 || c.Devices[1] != n.Pods[1].HostDevice {
		t.Errorf("devices: %q", c.Devices)
	}
	e, n = arranged(t, "flannel-host-gw", 2)
	if f := e.Rules(n, nil); f.Flannel == nil || f.Calico != nil || !f.Flannel.PodCIDR.IsValid() {
		t.Errorf("flannel-host-gw: %+v", f)
	}
	e, n = arranged(t, "canal", 2)
	if r = e.Rules(n, nil); r.Flannel == nil || r.Calico == nil || r.Calico.VXLAN || len(r.Calico.Pools) > 0 {
		t.Errorf("canal: %+v", r)
	}
}

func TestProgrammedNodesHaveNoKubeProxy(t *testing.T) {
	for _, p := range profile.All() {
		e, n := arranged(t, p.Name, 2)
		_, programmed := e.Dataplane.(dataplane.Programmed)
		r := e.Rules(n, nil)
		if (p.Services == "ebpf") != (r.Cilium != nil || r.Calico != nil && r.Calico.BPF) || p.Services == "ebpf" && !programmed {
			t.Errorf("%s: Services by %s, programmed %v, rules %+v", p.Name, p.Services, programmed, r)
		}
	}
}

// TestMissingCgroup: without the node's cgroup no program is loaded, and the error has the reason.
func TestMissingCgroup(t *testing.T) {
	reason := errors.New("not mounted here")
	for _, name := range []string{"cilium-vxlan", "calico-ebpf"} {
		e, _ := arranged(t, name, 2)
		_, err := e.Dataplane.(dataplane.Programmed).Program(dataplane.Programming{NoCgroup: reason})
		if !errors.Is(err, reason) || !strings.Contains(err.Error(), "cgroup (v2)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
