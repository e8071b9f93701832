package dataplane

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

func TestEveryLabProfileHasItsDataplane(t *testing.T) {
	var listed []string
	for _, d := range All {
		listed = append(listed, d.Profile)
		if _, ok := profile.Lookup(d.Profile); !ok {
			t.Errorf("%s is not in the catalogue", d.Profile)
		}
	}
	for _, name := range profile.Names() {
		if !slices.Contains(listed, name) {
			t.Errorf("%s has no dataplane", name)
		}
	}
	if _, ok := Lookup("no-such"); ok {
		t.Error("Lookup finds what is not there")
	}
}

func arranged(d Dataplane, pods int) Node {
	n := Node{
		Name: "node-3", Addr: netip.MustParsePrefix("172.18.0.13/16"), MTU: 1500,
		Cluster: netip.MustParsePrefix("10.244.0.0/16"),
	}
	d.Arrange(&n, 3, pods)
	return n
}

func TestCalicoBlocksHoldTunnelAndPods(t *testing.T) {
	for pods, blocks := range map[int]int{1: 1, 63: 1, 64: 2, 127: 2, 128: 3, 250: 4} {
		n := arranged(calico{vxlan: true}, pods)
		if len(n.Blocks) != blocks {
			t.Errorf("%d pods take %d blocks, want %d", pods, len(n.Blocks), blocks)
		}
		if n.Tunnel.Addr != netip.MustParseAddr("10.244.3.0") || !n.Blocks[0].Contains(n.Tunnel.Addr) {
			t.Errorf("the tunnel has %v, the first block is %v", n.Tunnel.Addr, n.Blocks[0])
		}
		last := n.Pods[pods-1].Addr.Addr()
		if !n.Blocks[blocks-1].Contains(last) {
			t.Errorf("the last of %d pods has %v, outside %v", pods, last, n.Blocks[blocks-1])
		}
	}
	if n := arranged(calico{}, 2); n.Tunnel.Device != "" || n.Pods[0].MTU != 1500 {
		t.Errorf("without encapsulation: %+v", n)
	}
}

func TestDeviceNamesHaveTheirForm(t *testing.T) {
	for d, form := range map[Dataplane]struct {
		prefix string
		length int
	}{bridge{}: {"veth", 12}, ptp{}: {"veth", 12}, flannel{}: {"veth", 12}, hostGW{}: {"veth", 12}, canal{}: {"cali", 15}, calico{}: {"cali", 15},
		calicoBPF{}: {"cali", 15}, calicoIPIP{}: {"cali", 15}, ciliumPlane{}: {"lxc", 15}, ciliumPlane{overlay: true}: {"lxc", 15},
		ciliumPlane{netkit: true}: {"lxc", 15}, wireguard{}: {"veth", 12}} {
		for _, p := range arranged(d, 3).Pods {
			if len(p.HostDevice) != form.length || !strings.HasPrefix(p.HostDevice, form.prefix) {
				t.Errorf("%T: device %q, want %s and %d characters", d, p.HostDevice, form.prefix, form.length)
			}
		}
	}
}

func TestNotServed(t *testing.T) {
	refused := map[Dataplane]int{host{}: 0, flannel{}: 0, hostGW{}: 0, canal{}: 0, calico{}: 0, ciliumPlane{}: 0, calicoIPIP{}: 0, calicoBPF{}: 0, bridge{}: 2, ptp{}: 1, macvlan{}: 7, ipvlan{}: 7, sriov{}: 3, raw{}: len(plan.Paths) - 2}
	for d, want := range refused {
		got := 0
		for _, p := range plan.Paths {
			if d.NotServed(p) != "" {
				got++
			}
		}
		if got != want {
			t.Errorf("%T refuses %d paths, want %d", d, got, want)
		}
	}
}

// TestWhoseMACAddress: what tells the three dataplanes on the underlay apart that have no device on the node.
func TestWhoseMACAddress(t *testing.T) {
	for d, node := range map[Dataplane]bool{macvlan{}: false, ipvlan{}: true, sriov{}: false} {
		n := Node{Name: "node-3", Addr: netip.MustParsePrefix("172.18.0.13/16"), MAC: MACOf(2, 0, netip.MustParseAddr("172.18.0.13")), MTU: 1500}
		d.Arrange(&n, 3, 2)
		for _, p := range n.Pods {
			if (p.MAC.String() == n.MAC.String()) != node || p.HostDevice != "" || !n.Addr.Contains(p.Addr.Addr()) {
				t.Errorf("%T: %+v", d, p)
			}
		}
	}
}

func TestRulesNameWhatTheNodeHas(t *testing.T) {
	n, other := arranged(calico{vxlan: true}, 2), Node{Addr: netip.MustParsePrefix("172.18.0.14/16")}
	r := calico{vxlan: true}.Rules(n, []Node{other})
	c := r.Calico
	if r.Flannel != nil || c == nil || !c.VXLAN || !c.NATOutgoing || !slices.Equal(c.Pools, []netip.Prefix{n.Cluster}) {
		t.Fatalf("calico-vxlan: %+v", r)
	}
	if !slices.Equal(c.NodeAddrs, []netip.Addr{n.Addr.Addr(), n.Tunnel.Addr}) || !slices.Equal(c.Peers, []netip.Addr{other.Addr.Addr()}) {
		t.Errorf("addresses of node and peers: %+v", c)
	}
	if len(c.Endpoints) != 2 || c.Endpoints[1].Device != n.Pods[1].HostDevice {
		t.Errorf("endpoints: %+v", c.Endpoints)
	}
	if f := (hostGW{}).Rules(arranged(hostGW{}, 2), nil); f.Flannel == nil || f.Calico != nil || !f.Flannel.PodCIDR.IsValid() {
		t.Errorf("flannel-host-gw: %+v", f)
	}
	r = canal{}.Rules(arranged(canal{}, 2), nil)
	if r.Flannel == nil || r.Calico == nil || r.Calico.VXLAN || r.Calico.NATOutgoing || len(r.Calico.Pools) > 0 {
		t.Errorf("canal: %+v", r)
	}
}

// TestIdentitiesAreThoseOfACluster: the greatest lab's pods have identities of their own, in the range that Cilium has for
// a cluster.
func TestIdentitiesAreThoseOfACluster(t *testing.T) {
	seen := map[int]netip.Addr{}
	for number := 1; number <= plan.MaxNodes; number++ {
		n := Node{Name: "node", Addr: netip.MustParsePrefix("172.18.0.13/16"), MTU: 1500, Cluster: netip.MustParsePrefix("10.244.0.0/16")}
		ciliumPlane{}.Arrange(&n, number, plan.MaxPodsPerNode)
		for _, p := range n.Pods {
			id := Identity(p.Addr.Addr())
			if other, taken := seen[id]; taken || id < 256 || id > 65535 {
				t.Fatalf("%v has identity %d, as has %v", p.Addr, id, other)
			}
			seen[id] = p.Addr.Addr()
		}
	}
}

func TestProgrammedNodesHaveNoKubeProxy(t *testing.T) {
	for _, d := range All {
		p, _ := profile.Lookup(d.Profile)
		_, programmed := d.Dataplane.(Programmed)
		r := d.Rules(arranged(d.Dataplane, 2), nil)
		if (p.Services == "ebpf") != (r.Cilium != nil || r.CalicoBPF != nil) || p.Services == "ebpf" && !programmed {
			t.Errorf("%s: Services by %s, programmed %v, rules %+v", d.Profile, p.Services, programmed, r)
		}
	}
}

// TestNoCgroupIsSaid: without the node's cgroup nothing is loaded, and the reason is handed on.
func TestNoCgroupIsSaid(t *testing.T) {
	reason := errors.New("not mounted here")
	for _, d := range []Programmed{ciliumPlane{}, calicoBPF{}} {
		_, err := d.Program(Programming{NoCgroup: reason})
		if !errors.Is(err, reason) || !strings.Contains(err.Error(), "cgroup (v2)") {
			t.Errorf("%T: %v", d, err)
		}
	}
}
