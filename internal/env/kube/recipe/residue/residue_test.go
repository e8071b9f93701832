package residue

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// worn is a node on which everything was once, in the way of the kind comparison: manifests deleted, nothing cleaned.
func worn() Node {
	via := netip.MustParseAddr("192.168.7.12")
	return Node{
		Name: "one", Looked: true, Address: netip.MustParseAddr("192.168.7.11"), PodCIDR: netip.MustParsePrefix("10.244.0.0/24"),
		Annotations: []string{"flannel.alpha.coreos.com/public-ip", "flannel.alpha.coreos.com/backend-type", "projectcalico.org/IPv4Address", "volumes.kubernetes.io/x"},
		Taints:      []string{"node.cilium.io/agent-not-ready", "node-role.kubernetes.io/control-plane"},
		Files:       []string{"/run/flannel/subnet.env", "/etc/cni/net.d/05-cilium.conflist", "/etc/cni/net.d/README", "/etc/cni/net.d/10-flannel.conflist.cilium_bak", "/sys/fs/bpf/tc/globals/cilium_ipcache", "/run/cilium/cgroupv2", "/run/cilium/deleteQueue"},
		Sight: netstate.State{
			Conflists: []netstate.Conflist{{File: "10-calico.conflist"}, {File: "99-loopback.conf"}},
			Devices: []netstate.Device{
				{Name: "eth0", Kind: "device"}, {Name: "cni0", Kind: "bridge"}, {Name: "flannel.1", Kind: "vxlan"}, {Name: "tunl0", Kind: "ipip"},
				{Name: "cali1234", Kind: "veth"}, {Name: "lxcbr0", Kind: "bridge"}, {Name: "cilium_net", Kind: "veth"},
				{Name: "cilium_host", Kind: "veth", Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.7/32")}}, {Name: "lxc5", Kind: "veth"}, {Name: "cilium_vxlan", Kind: "vxlan"},
				{Name: "veth1", Kind: "veth", Addresses: []netip.Prefix{netip.MustParsePrefix("10.244.0.1/32")}}, {Name: "veth2", Kind: "veth"},
			},
			Routes: []netstate.Route{
				{To: netip.MustParsePrefix("10.244.1.0/24"), Via: &via}, {To: netip.MustParsePrefix("10.9.0.0/16"), Via: &via},
				{To: netip.MustParsePrefix("10.244.0.64/26"), Blackhole: true},
			},
			Rules: []netstate.Rule{
				{Priority: 9, Words: "fwmark 0x200/0xf00 lookup 2004"}, {Priority: 100, Words: "lookup local", IPv6: true},
				{Priority: 1000, Words: "from 10.9.0.0/16 lookup 7"},
			},
			Chains: &netstate.Chains{Prefixes: map[string]int{"KUBE-": 10, "cali-": 4, "CILIUM_": 0}, Tables: []string{"ip kube-proxy", "ip filter", "ip flannel-ipv4"}},
			Programs: &[]netstate.Program{
				{Device: "eth0", Hook: "tcx ingress", Name: "cil_from_netdev"}, {Device: "lxc5", Hook: "tc ingress", Name: "cil_from_container"},
				{Device: "eth0", Hook: "tc egress", Name: "cali_tc_main"}, {Device: "eth0", Hook: "xdp", Name: "someone"},
			},
		},
	}
}

// other is a second node on which nothing is left.
var other = Node{Name: "two", Looked: true, Address: netip.MustParseAddr("192.168.7.12"), PodCIDR: netip.MustParsePrefix("10.244.1.0/24"), Sight: netstate.State{BootID: "b"}}

func names(left []Leftover) []string {
	var list []string
	for _, l := range left {
		list = append(list, l.Kind+" "+l.Name)
	}
	slices.Sort(list)
	return list
}

// TestJudge: each leftover has its owner and the command that removes it; other things are not listed.
func TestJudge(t *testing.T) {
	left := Judge(Cluster{Nodes: []Node{worn(), other}, Definitions: []string{"ciliumnodes.cilium.io", "ippools.crd.projectcalico.org", "widgets.example.com"}})
	want := []string{
		"BPF program cali_tc_main on eth0 tc egress", "BPF program cil_from_netdev on eth0 tcx ingress",
		"annotation flannel.alpha.coreos.com/*", "annotation projectcalico.org/*",
		"definition ciliumnodes.cilium.io", "definition ippools.crd.projectcalico.org",
		"device cali1234", "device cilium_host", "device cilium_vxlan", "device cni0", "device flannel.1", "device lxc5", "device veth1",
		"file /etc/cni/net.d/05-cilium.conflist", "file /etc/cni/net.d/10-calico.conflist", "file /etc/cni/net.d/10-flannel.conflist.cilium_bak", "file /run/cilium/cgroupv2", "file /run/flannel/subnet.env", "file /sys/fs/bpf/tc/globals/cilium_ipcache",
		"iptables chains KUBE-", "iptables chains cali-", "nftables table ip flannel-ipv4", "nftables table ip kube-proxy",
		"route 10.244.0.64/26", "route 10.244.1.0/24", "routing rule 100: lookup local", "routing rule 9: fwmark 0x200/0xf00 lookup 2004", "taint node.cilium.io/agent-not-ready",
	}
	if got := names(left); !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	removed := map[string]string{}
	for _, l := range left {
		removed[l.Kind+" "+l.Name] = l.Remove
	}
	for name, want := range map[string]string{
		"file /run/cilium/cgroupv2":                       "umount /run/cilium/cgroupv2; rmdir /run/cilium/cgroupv2",
		"routing rule 9: fwmark 0x200/0xf00 lookup 2004":  "ip rule del fwmark 0x200/0xf00 lookup 2004",
		"routing rule 100: lookup local":                  "ip -6 rule add pref 0 lookup local && ip -6 rule del pref 100 lookup local",
		"BPF program cil_from_netdev on eth0 tcx ingress": "rm -f /sys/fs/bpf/cilium/devices/eth0/links/cil_from_netdev",
	} {
		if removed[name] != want {
			t.Errorf("%s: %q, want %q", name, removed[name], want)
		}
	}
	for _, l := range left {
		if l.Kind == "annotation" && l.Owner == Flannel && l.Remove != "kubectl annotate node one flannel.alpha.coreos.com/backend-type- flannel.alpha.coreos.com/public-ip-" {
			t.Errorf("%s: %s", l, l.Remove)
		}
		if l.Node == "two" {
			t.Errorf("the clean node has %s", l)
		}
		if l.Owner == "" || l.Harm == "" || l.Remove == "" || strings.Contains(l.Remove, "%") {
			t.Errorf("%s: %+v", l, l)
		}
	}
}

// TestInForce: what belongs to something that runs is not left.
func TestInForce(t *testing.T) {
	for _, c := range []struct {
		inForce []string
		gone    []string
		stay    []string
	}{
		{[]string{Flannel}, []string{"device cni0", "device flannel.1", "file /run/flannel/subnet.env", "route 10.244.1.0/24", "nftables table ip flannel-ipv4"}, []string{"device cali1234", "iptables chains KUBE-"}},
		{[]string{Cilium}, []string{"device lxc5", "device cilium_vxlan", "definition ciliumnodes.cilium.io", "taint node.cilium.io/agent-not-ready"}, []string{"device cni0"}},
		{[]string{Canal}, []string{"device cali1234", "device flannel.1", "route 10.244.0.64/26"}, []string{"device lxc5"}},
		{[]string{KubeProxy}, []string{"iptables chains KUBE-", "nftables table ip kube-proxy"}, []string{"iptables chains cali-"}},
	} {
		got := names(Judge(Cluster{Nodes: []Node{worn(), other}, Definitions: []string{"ciliumnodes.cilium.io"}, InForce: c.inForce}))
		for _, g := range c.gone {
			if slices.Contains(got, g) {
				t.Errorf("%v in force: %s is called left", c.inForce, g)
			}
		}
		for _, s := range c.stay {
			if !slices.Contains(got, s) {
				t.Errorf("%v in force: %s is not called left", c.inForce, s)
			}
		}
	}
}

// TestTunnel: the kernel's own tunl0 is not a leftover; one with an address is.
func TestTunnel(t *testing.T) {
	n := Node{Name: "n", Looked: true, Sight: netstate.State{Devices: []netstate.Device{{Name: "tunl0", Kind: "ipip"}}}}
	if left := Judge(Cluster{Nodes: []Node{n}}); len(left) > 0 {
		t.Errorf("%v", left)
	}
	n.Sight.Devices[0].Addresses = []netip.Prefix{netip.MustParsePrefix("10.244.0.1/32")}
	if left := Judge(Cluster{Nodes: []Node{n}}); len(left) != 1 || !strings.Contains(left[0].Remove, "tunl0") {
		t.Errorf("%v", left)
	}
}

// TestUnseen: a node that was not inspected is not called clean.
func TestUnseen(t *testing.T) {
	c := Cluster{Nodes: []Node{{Name: "dark"}, other}, Unseen: []string{"no right to list definitions"}}
	got := c.AllUnseen()
	if len(got) != 2 || !strings.HasSuffix(got[1], "inspected on dark") {
		t.Errorf("%q", got)
	}
}

// TestEveryPathIsRead: each sign that is a file can be found, since its directory is read.
func TestEveryPathIsRead(t *testing.T) {
	for _, s := range files {
		for _, name := range s.names {
			if dir := name[:strings.LastIndexByte(name, '/')+1]; !slices.Contains(paths, dir) {
				t.Errorf("%s: %s is not read", name, dir)
			}
		}
	}
}

// TestFiles: entries of the known directories are found under the paths of the node, and nothing else.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"/etc/cni/net.d/10-flannel.conflist", "/run/flannel/subnet.env", "/etc/passwd", "/sys/fs/bpf/tc/globals/cilium_ipcache"} {
		if err := os.MkdirAll(root+name[:strings.LastIndexByte(name, '/')], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, unseen := Files(root)
	for _, want := range []string{"/etc/cni/net.d/10-flannel.conflist", "/run/flannel/subnet.env", "/sys/fs/bpf/tc/globals/cilium_ipcache"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not found in %q", want, found)
		}
	}
	if slices.Contains(found, "/etc/passwd") || len(unseen) > 0 {
		t.Errorf("found %q, unseen %q", found, unseen)
	}
	if err := os.RemoveAll(root + "/run/flannel"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/run/flannel", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, unseen = Files(root); len(unseen) != 1 || !strings.HasPrefix(unseen[0], "/run/flannel/: ") {
		t.Errorf("unseen %q, want the directory that cannot be read", unseen)
	}
}

// FuzzJudge: whatever names there are, nothing fails and everything said is whole.
func FuzzJudge(f *testing.F) {
	f.Add("cni0", "bridge", "KUBE-", "cil_x")
	f.Add("cali%s", "veth", "%s", "cali_%d")
	f.Fuzz(func(t *testing.T, device, kind, chain, program string) {
		n := Node{Name: "n", Looked: true, Files: []string{device, chain}, Annotations: []string{program}, Sight: netstate.State{
			Devices: []netstate.Device{{Name: device, Kind: kind}}, Chains: &netstate.Chains{Prefixes: map[string]int{chain: 1}, Tables: []string{chain}},
			Programs: &[]netstate.Program{{Device: device, Hook: kind, Name: program}},
		}}
		for _, l := range Judge(Cluster{Nodes: []Node{n}, Definitions: []string{device, chain}}) {
			if l.Owner == "" || l.Remove == "" || l.Name == "" {
				t.Errorf("%+v", l)
			}
		}
	})
}
