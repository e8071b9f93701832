package selftest

import (
	"context"
	"fmt"
	"github.com/cnibench/cnibench/internal/env/lab/expect"

	"github.com/cnibench/cnibench/internal/plan"
)

// check is an assertion that is yet to be looked into.
type check struct {
	// kind says what is looked at; id is made of it and the path.
	kind string
	// path is the zero path for a fact about nodes and pods.
	path  plan.Path
	what  string
	probe func(context.Context, *scene) finding
}

// finding is what a probe came back with.
type finding struct {
	want, got string
	// within says that got does not equal want and satisfies it all the same, as "1514" does "at most 1514".
	within bool
}

// failed is the finding of a probe that could not look.
func failed(want string, err error) finding { return finding{want: want, got: "error: " + err.Error()} }

func (c check) id() string {
	if c.path == (plan.Path{}) {
		return c.kind
	}
	return c.kind + "@" + c.path.String()
}

func (c check) assert(ctx context.Context, s *scene) Assertion {
	a := Assertion{Profile: string(s.inst.Name), ID: c.id(), What: c.what}
	if c.path != (plan.Path{}) {
		a.Path = c.path.String()
	}
	if ctx.Err() != nil {
		a.Want, a.Got = "time to look", fmt.Sprintf("error: %v", context.Cause(ctx))
		return a
	}
	f := c.probe(ctx, s)
	a.Want, a.Got, a.OK = f.want, f.got, f.within || f.got == f.want
	return a
}

// checks turns a table into checks: facts about nodes and pods first, then path by path in report order. It is pure, so
// that what would be asserted can be known without a lab.
func checks(x expectation) []check {
	list := nodeChecks(x)
	for _, path := range plan.Paths {
		if who, ok := x.Served[path]; ok {
			list = append(list, pathChecks(x, path, who)...)
		}
	}
	list = append(list, wireChecks(x)...)
	list = append(list, serviceChecks(x)...)
	for _, path := range x.Refused {
		list = append(list, check{"refused", path, "the path does not work", refused(path)})
	}
	// A neighbour is known only after traffic, so the gateway's address comes last.
	if x.Attach != nil && x.Attach.Gateway != expect.NoGateway {
		list = append(list, check{kind: "gateway.mac", what: "the MAC address that a pod has for its gateway", probe: gatewayMAC})
	}
	// And the programs have dropped what they will only after all traffic.
	if x.Programs != nil {
		list = append(list, check{kind: "drops", what: "what the nodes' programs dropped of all this", probe: drops})
	}
	return list
}

// pathChecks are those of one path that works.
func pathChecks(x expectation, path plan.Path, who expect.Client) []check {
	list := []check{
		{"exchange", path, "a TCP and a UDP exchange succeed", exchanged(path)},
		{"source", path, "whom the backend takes for the client", source(path, x.witnesses(path, who))},
	}
	switch {
	case x.Programs != nil:
		list = append(list, programChecks(x, path)...)
	case path.ByService():
		list = append(list,
			check{"dnat", path, "the translation in conntrack, and the node that has it", translation(path)},
			check{"vip", path, "where the Service's own address is seen", vip(path)})
	}
	if x.switched() && (path == expect.PodHostSame || path == expect.HostPodSame) {
		list = append(list, check{"wire", path, "what crosses the wire", carriers(path, "plain")})
	}
	if path != expect.PodPodSame && path != expect.PodPodCross {
		return list
	}
	list = append(list, check{"conntrack.inner", path, "the nodes that track the connection between the pods", innerTracked(path, x.Tracked || x.TrackedBetween && path == expect.PodPodCross)})
	if x.Attach != nil {
		ttl := x.Attach.SameTTL
		if path == expect.PodPodCross {
			ttl = x.Attach.CrossTTL
		}
		list = append(list, check{"ttl", path, "the TTL that is left of 64 at the receiving pod", ttlLeft(path, ttl)})
	}
	if x.policies > 0 && (x.policed || x.Programs != nil) {
		list = append(list, check{"policy.denied", path, "a connection to the one port that the policies deny", denied(path)})
	}
	if path == expect.PodPodSame {
		carried := "nothing"
		if x.switched() {
			carried = "plain"
		}
		list = append(list, check{"wire", path, "what crosses the wire", carriers(path, carried)})
	}
	if x.Untouched {
		list = append(list, check{"untouched", path, "what the nodes' rules count while pods talk", untouched(path)})
	}
	return list
}

// wireChecks are about packets between two nodes.
func wireChecks(x expectation) []check {
	path := x.crossPath()
	if x.sealed() {
		return sealedChecks(x.tunnel, path)
	}
	list := []check{
		{"wire", path, "what carries a packet between nodes", between(path, x)},
		{"wire.addresses", path, "the addresses on the wire, outer before inner", wireAddresses(path, x.tunnel)},
		{"wire.frame", path, "the frame around the largest packet that a pod may send, in bytes", frameLength(path)},
		{"wire.limit", path, "the largest frame of a bulk transfer, in bytes", largestFrame},
		{"wire.mac", path, "whose MAC address a packet bears on the wire", wireMAC(path)},
	}
	if x.Attach == nil {
		list = append(list, check{"conntrack.inner", path, "the nodes that track the connection", innerTracked(path, x.Tracked)})
	}
	if x.tunnel != nil && !x.tunnel.ipip {
		list = append(list, check{"conntrack.outer", path, "the entries for packets of the tunnel", outerTracked(path, x.tunnel)})
	}
	if x.policed {
		list = append(list,
			check{"policy.egress", path, "what the sending pod's chain cali-fw counts", policed(0, "cali-fw-", x.decides("cali-po-", "cali-pro-"))},
			check{"policy.ingress", path, "what the receiving pod's chain cali-tw counts", policed(1, "cali-tw-", x.decides("cali-pi-", "cali-pri-"))})
	}
	if x.policies > 0 && x.policed {
		list = append(list,
			check{"policy.walk.egress", path, "how many policies the sending pod's first packet asks", walked(0, "cali-po-")},
			check{"policy.walk.ingress", path, "how many policies the receiving pod's first packet asks", walked(1, "cali-pi-")})
	}
	return list
}

// decides is the chain that lets a pod's new connection through: that of a policy, where one selects it, or of a profile.
func (x expectation) decides(policy, profile string) string {
	if x.policies > 0 {
		return policy
	}
	return profile
}

// carrier is what the switch must see between nodes.
func (x expectation) carrier() string {
	switch {
	case x.tunnel == nil:
		return "plain"
	case x.tunnel.ipip:
		return "ip protocol 4"
	}
	return fmt.Sprintf("vxlan udp %d vni %d", x.tunnel.port, x.tunnel.vni)
}

// nodeChecks are about what stands on nodes and in pods, without traffic.
func nodeChecks(x expectation) []check {
	list := []check{
		{kind: "mtu", what: "the MTU of pods, or of nodes whose pods have no network of their own", probe: podMTU},
		{kind: "offload", what: "segmentation and aggregation on the devices", probe: offload},
		{kind: "switch.filtering", what: "does netfilter see what the switch switches", probe: switchFiltering},
	}
	if x.Attach != nil {
		list = append(list, attachChecks(x)...)
	}
	if t := x.tunnel; t != nil {
		list = append(list, check{kind: "tunnel.device", what: "the tunnel device of each node", probe: tunnelDevice(t)})
		if t.sealed {
			list = append(list, check{kind: "tunnel.peers", what: "the peers of the tunnel device", probe: tunnelPeers(t)})
		} else if !t.ipip {
			list = append(list,
				check{kind: "tunnel.fdb", what: "forwarding entries of the tunnel device", probe: tunnelForwarding(t)},
				check{kind: "tunnel.neighbour", what: "ARP entries of the tunnel device", probe: tunnelNeighbours(t)})
		}
		if t.routed {
			list = append(list, check{kind: "mtu.route", what: "the MTU of the pods' default route", probe: routeMTU})
		}
	}
	if x.nft || x.proxyNFT {
		list = append(list, check{kind: "services.nft", what: "the ports of Services that kube-proxy serves, by nftables and by iptables", probe: proxyNFT})
	}
	if x.proxyIPVS {
		list = append(list,
			check{kind: "services.ipvs", what: "addresses of Services on the node, virtual servers, and chains for Services in iptables", probe: proxyIPVS},
			check{kind: "services.ipvs.counted", what: "what the first node's virtual server of the other node's Service was used for", probe: countedIPVS})
	}
	if x.Blackhole != 0 {
		list = append(list, check{kind: "route.blackhole", what: "the route for unused addresses of a node's own range", probe: blackhole(x.Blackhole)})
	}
	if x.Remote != nil {
		list = append(list, check{kind: "route.remote", what: "the route to another node's pods", probe: remote})
	}
	return list
}

// witnesses are who is seen on a path, over TCP and over UDP.
func (x expectation) witnesses(path plan.Path, who expect.Client) [2]expect.Client {
	if udp, ok := x.Datagrams[path]; ok {
		return [2]expect.Client{who, udp}
	}
	return [2]expect.Client{who, who}
}

func attachChecks(x expectation) []check {
	var list []check
	if x.Attach.Gateway != expect.NoGateway {
		list = append(list,
			check{kind: "gateway", what: "the pods' default route", probe: podGateway},
			check{kind: "forwarding", what: "forwarding on the nodes", probe: nodeSysctl(x.setting("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"), "1")})
	}
	if x.Attach.Bridge != "" {
		list = append(list,
			check{kind: "bridge", what: "the bridge that the pods' devices are ports of", probe: bridgePorts(x.Attach.Bridge)},
			check{kind: "bridge.filtering", what: "does netfilter see on the nodes what bridges switch", probe: nodeSysctl(x.setting("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"), "1")})
	}
	if x.netkit {
		list = append(list, check{kind: "pod.device", what: "the devices of each pod, in the pod and on its node, and their MAC addresses", probe: netkitPair})
	}
	if x.Attach.ProxyARP {
		list = append(list, check{kind: "proxy_arp", what: "does the host side answer pods for any address (" + x.setting("proxy_arp", "proxy_ndp") + ")", probe: proxyARP})
	}
	return list
}
