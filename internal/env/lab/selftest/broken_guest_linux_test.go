package selftest

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
)

// inIPVS is a lab whose kube-proxies are in ipvs mode.
var inIPVS = plan.Lab{ServiceProxy: "ipvs"}

// breakagesInGuest are things done to what few kernels of build machines have; that of make test-vm has it all.
var breakagesInGuest = []breakage{
	{
		name: "a flowtable without a pod's device", profile: "kindnet(flowtable=20)",
		script: `t=$(nft list table inet kindnet-fastpath); nft delete table inet kindnet-fastpath
			echo "$t" | sed "/devices = /s/$VETH, \|, $VETH//" | nft -f -`,
		notices: []string{"flowtable.rules" + same, "flowtable.rules" + cross},
		holds:   []string{"flowtable.late" + same, "flowtable.late" + cross, "exchange@pod-to-service/remote"},
	},
	{
		name: "a flowtable without a rule", profile: "kindnet(flowtable=20)",
		script:  `nft flush chain inet kindnet-fastpath kindnet-fastpath-chain`,
		notices: []string{"flowtable.late" + same, "flowtable.late" + cross, "flowtable.late@pod-to-service/remote", "flowtable.rules" + cross},
		holds:   []string{"flowtable.early" + cross, "exchange" + cross},
	},
	{
		name: "a flowtable without a threshold", profile: "kindnet(flowtable=20)",
		script:  `nft add rule inet kindnet-fastpath kindnet-fastpath-chain flow add @kindnet-flowtables`,
		notices: []string{"flowtable.early" + same, "flowtable.early" + cross},
		holds:   []string{"flowtable.late" + cross, "flowtable.rules" + cross},
	},
	{
		name: "a pod that Calico keeps out of the flowtable", profile: "calico-nftables(flowtable=1)", at: bothNodes,
		script:  `nft add element ip calico cali40no-flow-offload "{ $SELF }"`,
		notices: []string{"flowtable.late" + same, "flowtable.late" + cross, "flowtable.rules" + cross},
		holds:   []string{"policy.egress" + cross, "exchange@pod-to-service/remote"},
	},
	{
		name: "an encrypted tunnel without its device", profile: "flannel-wireguard",
		script:  `ip link del flannel-wg`,
		notices: []string{"tunnel.device", "tunnel.peers", "route.remote", "exchange" + cross},
		holds:   []string{"exchange@host-to-host/cross-node"},
	},
	{
		name: "packets that IPsec does not encrypt", profile: "cilium-native(encryption=ipsec)", at: bothNodes,
		script:  `/usr/sbin/ip xfrm policy flush`, // not that of busybox
		notices: []string{"tunnel.states", "wire" + cross, "wire.clear" + cross, "wire.addresses" + cross},
		holds:   []string{"exchange" + cross, "rules.encryption"},
	},
	{
		name: "a node that delivers to branch interfaces itself", profile: "aws-vpc-branch",
		script:  `ip rule add priority 0 lookup local`,
		notices: []string{"exchange@pod-to-host/same-node", "wire.device@pod-to-host/same-node", "exchange@host-to-service/local"},
		holds:   []string{"rules.pods", "exchange" + same, "wire" + same, "wire.vlan" + cross},
	},
	{
		name: "a pod past its branch interface", profile: "aws-vpc-branch",
		script:  `ip rule del iif $VETH`,
		notices: []string{"rules.pods", "wire" + same, "wire" + cross, "wire.device" + same, "wire.vlan" + same, "wire.vlan" + cross, "wire.mac" + cross},
		holds:   []string{"exchange" + cross, "exchange" + same},
	},
	{
		name: "a pod of branches by the first interface", profile: "aws-vpc-branch-standard",
		script:  `ip rule del priority 1536 from $SELF`,
		notices: []string{"rules.pods", "wire" + cross, "wire.device" + cross, "wire.vlan" + cross, "wire.mac" + cross},
		holds:   []string{"exchange" + cross, "ttl" + same, "wire" + same},
	},
	{
		name: "a short cut between branch interfaces", profile: "aws-vpc-branch",
		script:  `ip rule add priority 5 to $NEAR lookup 301`,
		notices: []string{"rules.pods", "ttl" + same, "wire.device" + same, "wire.vlan" + same},
		holds:   []string{"exchange" + cross, "exchange" + same},
	},
	{
		name: "a netkit device that is down", profile: "cilium-netkit",
		script:  `ip link set $VETH down`,
		notices: []string{"exchange" + same, "exchange" + cross},
		holds:   []string{"exchange@host-to-host/cross-node", "pod.device"},
	},
	{
		name: "no Service's address on a node in ipvs mode", profile: "flannel-vxlan", lab: inIPVS,
		script:  `ip addr flush dev kube-ipvs0`,
		notices: []string{"services.ipvs", "exchange@pod-to-service/remote"},
		holds:   []string{"exchange" + cross},
	},
	{
		name: "a rule translates in place of ipvs", profile: "host", lab: inIPVS,
		script:  `$IPTABLES -t nat -I OUTPUT -d $VIP -j DNAT --to-destination $REMOTE; $IPTABLES -t nat -I OUTPUT -d $VIP -j KUBE-MARK-MASQ`,
		notices: []string{"services.ipvs.counted"},
		holds:   []string{"services.ipvs", "exchange@pod-to-service/remote"},
	},
	{
		name: "nobody is masqueraded in ipvs mode", profile: "flannel-vxlan", lab: inIPVS,
		script:  `$IPTABLES -t nat -F KUBE-MARK-MASQ`,
		notices: []string{"source@host-to-service/local", "source@external-to-nodeport/local"},
		holds:   []string{"services.ipvs", "exchange@pod-to-service/remote"},
	},
}

// TestRemovedFlowtable: without its table a connection goes on by the rules, and neither node has anything of it in a
// flowtable.
func TestRemovedFlowtable(t *testing.T) {
	inst := raised(t, plan.Lab{}, "kindnet(flowtable=20)")
	s, err := openScene(inst, table("kindnet"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.endsOf(dataplane.PodPodCross)
	if err != nil {
		t.Fatal(err)
	}
	err = s.newExchange(e, 0, 10*longest).holdConnection(t.Context(), func(client netip.AddrPort, round func() error) error {
		if err := repeat(30, round); err != nil {
			return err
		}
		if on, err := offloadingNodes(s, client); err != nil || !slices.Equal(on, bothNodes) {
			t.Errorf("in the flowtables of %v (%v), want those of both nodes", on, err)
		}
		for _, n := range inst.Nodes {
			shell(t, inst, &n.Host, "", `nft delete table inet kindnet-fastpath; ! nft list ruleset | grep -e fastpath -e flowtable`)
		}
		rules, err := rulesCountedDuring(t.Context(), s, inst.Nodes, "filter", func() error { return repeat(30, round) })
		if !slices.ContainsFunc(rules, func(c counted) bool { return c.place == "filter FORWARD" }) {
			t.Errorf("these rules count its packets, the forward hook's do not: %v", rules)
		}
		if on, err := offloadingNodes(s, client); err != nil || len(on) > 0 {
			t.Errorf("in the flowtables of %v (%v), want none", on, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// TestBranchesAndEarlyDemultiplexing: a pod with a strict branch interface answers its own node over TCP only without
// tcp_early_demux, and over UDP only without udp_early_demux. The lab sets the first to 0, so UDP alone does not work.
func TestBranchesAndEarlyDemultiplexing(t *testing.T) {
	inst := raised(t, plan.Lab{}, "aws-vpc-branch")
	s, err := openScene(inst, table("aws-vpc-branch"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	e, err := s.endsOf(dataplane.HostPodSame)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ tcp, udp string }{{"", ""}, {"0", "0"}, {"1", "1"}} {
		if tc.tcp == "" {
			tc.tcp, tc.udp = "0", "1" // as the profile has it
		} else if err := netns.SetSysctls(inst.Nodes[0].NS, []netns.Setting{{Name: "net/ipv4/tcp_early_demux", Value: tc.tcp}, {Name: "net/ipv4/udp_early_demux", Value: tc.udp}}); err != nil {
			t.Fatal(err)
		}
		x := s.newExchange(e, question, longest)
		if o := x.runTCP(t.Context()); (o.err == nil) != (tc.tcp == "0") {
			t.Errorf("tcp_early_demux %s: TCP: %v", tc.tcp, o.err)
		}
		if o := x.runUDP(t.Context()); (o.err == nil) != (tc.udp == "0") {
			t.Errorf("udp_early_demux %s: UDP: %v", tc.udp, o.err)
		}
	}
}
