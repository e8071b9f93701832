package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

func spec(t *testing.T, name string, l plan.Lab) instanceSpec {
	t.Helper()
	s, err := NewSpec(plan.VariantOf(name), l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpecGolden pins down every address, name and tunnel of every profile, and the drawing of it.
func TestSpecGolden(t *testing.T) {
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			s := spec(t, name, plan.Lab{PodsPerNode: 3})
			golden.Check(t, "draw/"+name+".golden", drawn(t, s))
			golden.Check(t, "spec/"+name+".golden", describe(s))
		})
	}
	for _, name := range in6(t) {
		t.Run(name+" in IPv6", func(t *testing.T) {
			s := spec(t, name, plan.Lab{PodsPerNode: 3, Family: IPv6})
			golden.Check(t, "draw/"+name+"-v6.golden", drawn(t, s))
			golden.Check(t, "spec/"+name+"-v6.golden", describe(s))
		})
	}
}

func drawn(t *testing.T, s instanceSpec) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Draw(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// in6 are the profiles that have an IPv6 form.
func in6(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, name := range profile.Names() {
		_, err := NewSpec(plan.VariantOf(name), plan.Lab{Family: IPv6})
		switch {
		case err == nil:
			names = append(names, name)
		case !errors.Is(err, ErrNoIPv6):
			t.Error(err)
		}
	}
	return names
}

// TestIPv6IsTheSameLab: the same profile has the same hosts, devices and ways in both versions of IP, and no address of
// the other.
func TestIPv6IsTheSameLab(t *testing.T) {
	for _, name := range in6(t) {
		in4, in6 := spec(t, name, plan.Lab{Services: 9}), spec(t, name, plan.Lab{Services: 9, Family: IPv6})
		podName := func(p, q dataplane.Pod) bool { return p.Name == q.Name }
		sameNode := func(n, m dataplane.Node) bool { return n.Name == m.Name && slices.EqualFunc(n.Pods, m.Pods, podName) }
		if !slices.EqualFunc(in4.Nodes, in6.Nodes, sameNode) || len(in4.Services) != len(in6.Services) {
			t.Errorf("%s: nodes %v and %v", name, in4.Nodes, in6.Nodes)
		}
		if bytes.Contains(describe(in6), []byte("10.244.")) || bytes.Contains(describe(in6), []byte("172.18.0")) {
			t.Errorf("%s: IPv4 addresses in IPv6:\n%s", name, describe(in6))
		}
		for _, p := range plan.Paths {
			e4, err4 := in4.Ends(p)
			e6, err6 := in6.Ends(p)
			if (err4 == nil) != (err6 == nil) || e4.Client != e6.Client || e4.Server != e6.Server || e4.Port != e6.Port {
				t.Errorf("%s %s: %+v (%v) and %+v (%v)", name, p, e4, err4, e6, err6)
			}
		}
	}
	if _, err := NewSpec(plan.VariantOf("calico-ipip"), plan.Lab{Family: IPv6}); !errors.Is(err, ErrNoIPv6) || !strings.Contains(err.Error(), "Calico has no IPIP for IPv6") {
		t.Errorf("calico-ipip in IPv6: %v", err)
	}
}

// describe writes what Draw leaves out too.
func describe(s instanceSpec) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "switch %v %v\nexternal %v %v\n", s.Switch.Addr, s.Switch.MAC, s.External.Addr, s.External.MAC)
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "%s %v %v MTU %d cluster %v pods %v blocks %v\n", n.Name, n.Addr, n.MAC, n.MTU, n.Cluster, n.PodCIDR, n.Blocks)
		fmt.Fprintf(&b, "\ttunnel %+v\n", n.Tunnel)
		for _, d := range n.Interfaces {
			fmt.Fprintf(&b, "\t%+v\n", d)
		}
		for _, p := range n.Pods {
			fmt.Fprintf(&b, "\t%+v\n", p)
		}
	}
	for _, svc := range s.Services {
		fmt.Fprintf(&b, "{Name:%s VIP:%v Port:%d TargetPort:%d NodePort:%d UDP:%t Backends:%+v}\n",
			svc.Name, svc.VIP, svc.Port, svc.TargetPort, svc.NodePort, svc.UDP, svc.Backends)
	}
	for _, p := range plan.Paths {
		if e, err := s.Ends(p); err != nil {
			fmt.Fprintf(&b, "%s: %v\n", p, err)
		} else {
			fmt.Fprintf(&b, "%s: %s ─► %v:%d at %s:%d\n", p, e.Client, e.Address, e.Port, e.Server, e.ListenPort)
		}
	}
	return b.Bytes()
}

// TestSpecHoldsTogether checks what must be true of every size of every profile.
func TestSpecHoldsTogether(t *testing.T) {
	sizes := []plan.Lab{
		{},
		{Nodes: plan.MaxNodes, PodsPerNode: plan.MaxPodsPerNode, Services: 7},
		{Nodes: 3, PodsPerNode: 64, MTU: 9000, Services: 1000},
		{Nodes: 5, PodsPerNode: 63, MTU: 1280},
	}
	sizes6 := []plan.Lab{
		{Family: IPv6}, {Family: IPv6, Nodes: plan.MaxNodes, PodsPerNode: plan.MaxPodsPerNode, Services: plan.MaxServices6, Endpoints: 1},
		{Family: IPv6, Nodes: 3, PodsPerNode: 64, MTU: 9000},
	}
	of6 := in6(t)
	for _, name := range append(profile.Names(), profile.Raw+"~twin") {
		all := sizes
		if slices.Contains(of6, name) {
			all = append(slices.Clone(sizes), sizes6...)
		}
		for _, l := range all {
			s := spec(t, name, l)
			if again := spec(t, name, l); !reflect.DeepEqual(s, again) {
				t.Errorf("%s: the same arguments gave another description", name)
			}
			t.Run(fmt.Sprintf("%s/IPv%d/%d nodes, %d pods", name, s.Lab.Family, s.Lab.Nodes, s.Lab.PodsPerNode), func(t *testing.T) {
				holdsTogether(t, s)
			})
		}
	}
}

func holdsTogether(t *testing.T, s instanceSpec) {
	addrs := map[netip.Addr]string{s.Switch.Addr.Addr(): "switch", s.External.Addr.Addr(): "external"}
	macs := map[string]string{s.Switch.MAC.String(): "switch", s.External.MAC.String(): "external"}
	once := func(a netip.Addr, mac, who string) {
		if other, ok := addrs[a]; ok {
			t.Errorf("%s and %s both have %v", who, other, a)
		}
		if other, ok := macs[mac]; ok && mac != "" {
			t.Errorf("%s and %s both have %s", who, other, mac)
		}
		addrs[a], macs[mac] = who, who
	}
	for _, n := range s.Nodes {
		once(n.Addr.Addr(), n.MAC.String(), n.Name)
		if n.Tunnel.Device != "" {
			once(n.Tunnel.Addr, n.Tunnel.MAC.String(), n.Name+" tunnel")
			if n.Tunnel.MTU != s.Lab.MTU-s.Profile.ReservedOn(s.Lab.Family) {
				t.Errorf("%s: tunnel MTU %d over %d", n.Name, n.Tunnel.MTU, s.Lab.MTU)
			}
		}
		devices, vlans := map[string]bool{}, map[int]bool{}
		for _, p := range n.Pods {
			if p.HostNetwork {
				continue
			}
			mac := p.MAC.String()
			if s.Profile.Name == "ipvlan" && mac == n.MAC.String() {
				mac = "" // shared with the NIC is what ipvlan is about
			}
			once(p.Addr.Addr(), mac, p.Name)
			if br, ok := dataplane.BranchOf(n.Interfaces, p.Addr.Addr()); ok {
				// 100 more is the number of its routing table, and 253 to 255 are the kernel's.
				if vlans[br.VLAN] || br.VLAN > 4094 || br.VLAN > 152 && br.VLAN < 156 || len(br.Name) > 15 || macs[br.MAC.String()] != "" {
					t.Errorf("%s: %+v", p.Name, br)
				}
				vlans[br.VLAN], macs[br.MAC.String()] = true, p.Name+" on the trunk"
			}
			if p.MTU != s.Lab.MTU-s.Profile.ReservedOn(s.Lab.Family) {
				t.Errorf("%s: MTU %d, want %d less %d", p.Name, p.MTU, s.Lab.MTU, s.Profile.ReservedOn(s.Lab.Family))
			}
			if n.PodCIDR.IsValid() && !n.PodCIDR.Contains(p.Addr.Addr()) {
				t.Errorf("%s: %v is not in %v", p.Name, p.Addr, n.PodCIDR)
			}
			inBlock := len(n.Blocks) == 0
			for _, b := range n.Blocks {
				inBlock = inBlock || b.Contains(p.Addr.Addr())
			}
			if !inBlock {
				t.Errorf("%s: %v is in none of %v", p.Name, p.Addr, n.Blocks)
			}
			if len(p.HostDevice) > 15 || p.HostDevice != "" && devices[p.HostDevice] {
				t.Errorf("%s: device name %q is too long or taken", p.Name, p.HostDevice)
			}
			devices[p.HostDevice] = true
		}
	}
	if len(s.Services) > 0 && len(s.Services) != s.Lab.Services+3 {
		t.Errorf("%d Services, want %d and the three measured", len(s.Services), s.Lab.Services)
	}
	vips := map[netip.Addr]bool{}
	for _, svc := range s.Services {
		if vips[svc.VIP] {
			t.Errorf("two Services at %v", svc.VIP)
		}
		vips[svc.VIP] = true
	}
}

func TestSpecRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		lab  plan.Lab
		says string
	}{
		{"calcio", plan.Lab{}, `unknown profile "calcio"`},
		{"canal", plan.Lab{ServiceProxy: "ipvs"}, `profile "canal": beside kube-proxy in ipvs mode Felix has more chains`},
		{"aws-vpc-branch", plan.Lab{ServiceProxy: "ipvs"}, `profile "aws-vpc-branch": beside kube-proxy in ipvs mode pods reach no Service`},
		{"aws-vpc-branch(loss=0.01)", plan.Lab{}, `profile "aws-vpc-branch(loss=0.01)": the lab's links with delay or loss carry no VLAN tags`},
		{"host", plan.Lab{ServiceProxy: "haproxy"}, `lab.serviceProxy: "haproxy" is not one of iptables, nftables, ipvs`},
		{"canal", plan.Lab{Nodes: 17}, "lab.nodes: 17 is out of range: want 2 to 16"},
		{"canal", plan.Lab{PodsPerNode: 1}, "lab.podsPerNode: 1 is out of range: want 2 to 250"},
		{"canal", plan.Lab{MTU: 500}, "lab.mtu: 500 is out of range: want 1280 to 9000"},
		{"canal", plan.Lab{Services: -1}, "lab.services: -1 is out of range: want 0 to 10000"},
		{"canal", plan.Lab{Family: 5}, "lab.family: 5 is not 4 or 6"},
		{"canal", plan.Lab{TrafficPolicy: "Near"}, `lab.trafficPolicy: "Near" is not one of Cluster, Local`},
		{"canal", plan.Lab{NIC: "fast"}, `lab.nic: "fast" is not one of ideal, wire`},
		{"canal", plan.Lab{CPU: "two"}, `lab.cpu: "two"`},
		{"canal", plan.Lab{CPU: "one split"}, `lab.cpu: "one split" is not one of auto, one, split`},
		{"canal", plan.Lab{Iptables: "bpf"}, `lab.iptables: "bpf"`},
	} {
		if _, err := NewSpec(plan.VariantOf(c.name), c.lab); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("NewSpec(%s, %+v) = %v, want %q", c.name, c.lab, err, c.says)
		}
	}
}

// TestNinePathsAreServed says which of the article's paths a profile may lack.
func TestNinePathsAreServed(t *testing.T) {
	lacks := map[string]map[string]bool{
		"raw": {"pod-to-host/same-node": true, "pod-to-host/cross-node": true, "pod-to-pod/same-node": true,
			"pod-to-pod/cross-node": true, "host-to-service/local": true, "host-to-service/remote": true,
			"pod-to-service/local": true, "pod-to-service/remote": true},
		"macvlan": {"pod-to-host/same-node": true, "host-to-service/local": true,
			"pod-to-service/local": true, "pod-to-service/remote": true},
		"ipvlan": {"pod-to-host/same-node": true, "host-to-service/local": true,
			"pod-to-service/local": true, "pod-to-service/remote": true},
		"sriov": {"pod-to-service/local": true, "pod-to-service/remote": true},
	}
	for _, name := range profile.Names() {
		s := spec(t, name, plan.Lab{})
		for _, p := range plan.NinePaths {
			_, err := s.Ends(p)
			var not *control.NotServedError
			if is := errors.As(err, &not); is != lacks[name][p.String()] || err != nil && !is {
				t.Errorf("%s %s: %v", name, p, err)
			}
			if not != nil && (not.Reason == "" || not.Profile != plan.VariantOf(name) || not.Path != p.String()) {
				t.Errorf("%s %s: incomplete reason %+v", name, p, not)
			}
		}
	}
}

// TestTrafficPolicyLocal: the node that is called keeps a client outside to its own endpoints, and says so on the path to
// another's.
func TestTrafficPolicyLocal(t *testing.T) {
	entry := map[plan.Locality]plan.Path{}
	for _, l := range []plan.Locality{plan.Local, plan.Remote} {
		entry[l] = plan.Path{From: plan.External, To: plan.NodePort, Locality: l}
	}
	for _, name := range profile.Names() {
		cluster, local := spec(t, name, plan.Lab{}), spec(t, name, plan.Lab{TrafficPolicy: "Local"})
		for _, p := range plan.Paths {
			_, before := cluster.Ends(p)
			_, err := local.Ends(p)
			var not *control.NotServedError
			switch {
			case before != nil && err == nil, before == nil && p.From != plan.External && err != nil:
				t.Errorf("%s %s: %v, with the policy Cluster %v", name, p, err, before)
			case p == entry[plan.Remote] && !errors.As(err, &not), p == entry[plan.Local] && before == nil && (err != nil) != (name == "sriov" || name == "aws-vpc-branch"):
				t.Errorf("%s %s: %v", name, p, err)
			case p.To == plan.LoadBalancer && (err != nil) != slices.Contains([]string{"raw", "macvlan", "ipvlan", "sriov", "aws-vpc-eni2", "aws-vpc-branch", "aws-vpc-branch-standard"}, name):
				t.Errorf("%s %s: %v", name, p, err)
			case not != nil && before == nil && !strings.HasPrefix(not.Reason, "externalTrafficPolicy Local: "):
				t.Errorf("%s %s: the reason is %q", name, p, not.Reason)
			}
		}
		for _, svc := range local.proxyServices(0) {
			if !svc.ExternalTrafficPolicyLocal {
				t.Errorf("%s: %s is of the policy Cluster", name, svc.Name)
			}
		}
	}
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		mode  condition.Placement
		cpus  []int
		nodes int
		want  placement
		text  string
	}{
		{"one", []int{0}, 2, placement{mode: "one", nodes: [][]int{{0}, {0}}, external: []int{0}, aside: []int{}}, "one (CPU 0)"},
		{"one", []int{0, 1, 5}, 2, placement{mode: "one", nodes: [][]int{{5}, {5}}, external: []int{5}, aside: []int{0, 1}}, "one (CPU 5)"},
		{"auto", []int{0, 1, 2}, 2, placement{mode: "one", nodes: [][]int{{2}, {2}}, external: []int{2}, aside: []int{0, 1}}, "one (CPU 2)"},
		{"auto", []int{0, 1, 2, 3}, 2, placement{mode: "split", nodes: [][]int{{0, 1}, {2, 3}}, external: []int{2, 3}}, "split (node-1: CPU 0,1; node-2: CPU 2,3)"},
		{"split", []int{4, 6}, 2, placement{mode: "split", nodes: [][]int{{4}, {6}}, external: []int{6}}, "split (node-1: CPU 4; node-2: CPU 6)"},
		{"split", []int{0, 1, 2, 3, 4}, 2, placement{mode: "split", nodes: [][]int{{0, 1}, {2, 3, 4}}, external: []int{2, 3, 4}}, "split (node-1: CPU 0,1; node-2: CPU 2,3,4)"},
		{"split", []int{3}, 2, placement{mode: "split", nodes: [][]int{{3}, {3}}, external: []int{3}}, "split (node-1: CPU 3; node-2: CPU 3)"},
		{"split", []int{0, 1}, 3, placement{mode: "split", nodes: [][]int{{0}, {0}, {1}}, external: []int{1}}, "split (node-1: CPU 0; node-2: CPU 0; node-3: CPU 1)"},
	} {
		got := divideCPUs(c.mode, c.cpus, c.nodes)
		if !reflect.DeepEqual(got, c.want) || got.String() != c.text {
			t.Errorf("place(%s, %v, %d) = %+v %q, want %+v %q", c.mode, c.cpus, c.nodes, got, got, c.want, c.text)
		}
	}
}
