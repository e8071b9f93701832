package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// check describes an assertion, and has the probe that decides whether it holds.
type check struct {
	// kind and path make the ID.
	kind string
	// path is the zero path for a fact about nodes and pods.
	path  plan.Path
	what  string
	probe inspection
}

// inspection is a function that probes a scene.
type inspection func(context.Context, *scene) finding

// finding is the result of a probe.
type finding struct {
	want, got string
	// within means that got satisfies want without being equal, as "1514" satisfies "at most 1514".
	within bool
}

// failedFinding returns the finding of a probe that failed with err.
func failedFinding(want string, err error) finding {
	return finding{want: want, got: "error: " + err.Error()}
}

func (c check) id() string {
	if c.path == (plan.Path{}) {
		return c.kind
	}
	return c.kind + "@" + c.path.String()
}

func (c check) assert(ctx context.Context, s *scene) Assertion {
	a := Assertion{Profile: s.inst.Name.String(), ID: c.id(), What: c.what}
	if c.path != (plan.Path{}) {
		a.Path = c.path.String()
	}
	if ctx.Err() != nil {
		a.Want, a.Got = "enough time", fmt.Sprintf("error: %v", context.Cause(ctx))
		return a
	}
	f := c.probe(ctx, s)
	a.Want, a.Got, a.OK = f.want, f.got, f.within || f.got == f.want
	return a
}

// allChecks returns all checks of an expectation, in the order in which they must run. It needs no lab, so that tests can
// list the assertions.
func allChecks(x expectation) []check {
	list := nodeChecks(x)
	for _, path := range plan.Paths {
		if who, ok := x.Served[path]; ok {
			list = append(list, pathChecks(x, path, who)...)
		}
	}
	list = append(list, wireChecks(x)...)
	if x.merges && x.Attach != nil {
		list = append(list, check{"merged", dataplane.PodPodCross, "the largest frame of a bulk transfer that the receiving pod gets, in bytes", probeMergedFrames})
	}
	list = append(append(list, serviceChecks(x)...), flowtableChecks(x)...)
	for _, path := range x.Refused {
		list = append(list, check{"refused", path, "the path does not work", refusalProbe("refused", path)})
	}
	// The neighbour entry of the gateway exists only after traffic.
	if x.Attach != nil && x.Attach.Gateway != dataplane.NoGateway {
		list = append(list, check{kind: "gateway.mac", what: "the MAC address that a pod has for its gateway", probe: probeGatewayMAC})
	}
	if x.plugged {
		list = append(list,
			check{kind: "cni.check", what: "what CHECK of the CNI plugins says about the pods", probe: probePluginCheck},
			check{kind: "cni.del", what: "what DEL of the CNI plugins leaves of one more pod", probe: probePluginDel})
	}
	// The programs count all drops only after all traffic.
	if x.Programs != nil {
		list = append(list, check{kind: "drops", what: "the packets that the nodes' programs dropped", probe: probeProgramDrops})
	}
	return list
}

// pathChecks returns the checks of one served path.
func pathChecks(x expectation, path plan.Path, who dataplane.Client) []check {
	list := []check{{"exchange", path, "a TCP and a UDP exchange succeed", exchangeProbe(path)}}
	if seen := x.expectedClients(path, who); !slices.Contains(seen[:], dataplane.AnyAddress) {
		list = append(list, check{"source", path, "the client's address as the backend sees it", sourceAddressesProbe(path, seen)})
	}
	if x.Unsaid {
		return list
	}
	switch {
	case x.Programs != nil:
		list = append(list, programChecks(x, path)...)
	case path.ByService() && x.engine != lab.FileServices: // the lab does not know where a file's engine translates
		list = append(list,
			check{"dnat", path, "the translation in conntrack, and the node that has it", entryTranslationProbe(path)},
			check{"vip", path, "where the Service's own address is seen", hiddenVIPProbe(path)})
	}
	if mark, ok := x.Marks[path]; ok {
		list = append(list, check{"conntrack.mark", path, "the mark of the connection", connectionMarkProbe(path, mark)})
	}
	if dev, ok := x.Leave[path]; ok {
		list = append(list, check{"wire.device", path, "the devices of the client's node, or of the entered one, that send to the wire", leavingDevicesProbe(path, dev)})
		if x.Branches && strings.Contains(dev, "vlan.") {
			list = append(list, check{"wire.vlan", path, "the VLANs of frames from and to each pod", vlansProbe(path)})
		}
	}
	if x.isSwitched() && (path == dataplane.PodHostSame || path == dataplane.HostPodSame) {
		list = append(list, check{"wire", path, "what crosses the wire", wireCarriersProbe(path, "plain")})
	}
	if path != dataplane.PodPodSame && path != dataplane.PodPodCross {
		return list
	}
	list = append(list, check{"conntrack.inner", path, "the nodes that track the connection between the pods", innerTrackingProbe(path, x.Tracked || x.TrackedBetween && path == dataplane.PodPodCross)})
	if x.Label != 0 {
		list = append(list, check{"conntrack.label", path, "the labels of the connection, on each node", connectionLabelsProbe(path, x.Label)})
	}
	if x.Attach != nil {
		ttl := x.Attach.SameTTL
		if path == dataplane.PodPodCross {
			ttl = x.Attach.CrossTTL
		}
		list = append(list, check{"ttl", path, "the remaining TTL (of 64) at the receiving pod", ttlProbe(path, ttl)})
	}
	if slices.Contains(x.deniedPaths(), path) {
		list = append(list, check{"policy.denied", path, "a connection to the one port that the policies deny", refusalProbe("policy.denied", path)})
	}
	if path == dataplane.PodPodSame {
		carried := "nothing"
		if x.isSwitched() {
			carried = "plain"
		} else if x.Strict {
			carried = taggedCarrier
		}
		list = append(list, check{"wire", path, "what crosses the wire", wireCarriersProbe(path, carried)})
	}
	// What encrypts is between two sockets of the nodes, whose packets their rules see.
	if x.Untouched && !(x.isSealed() && path == dataplane.PodPodCross) || x.unfiltered && path == dataplane.PodPodSame {
		list = append(list, check{"untouched", path, "the rules of the nodes that count packets between pods", countingRulesProbe(path)})
	}
	return list
}

// wireChecks returns the checks of packets between two nodes.
func wireChecks(x expectation) []check {
	path := x.crossPath()
	if x.Unsaid {
		return nil
	}
	if x.isSealed() {
		return append(sealedChecks(x.tunnel, path), policedChecks(x, path)...)
	}
	list := []check{
		{"wire", path, "what carries a packet between nodes", nodeCarriersProbe(path, x)},
		{"wire.addresses", path, "the addresses on the wire, outer before inner", wireAddressesProbe(path, x.wireTunnel())},
		{"wire.frame", path, "the length of the frame with the largest packet of a pod, in bytes", frameLengthProbe(path)},
		{"wire.limit", path, "the largest frame of a bulk transfer, in bytes", probeLargestFrame},
		{"wire.mac", path, "the source MAC address on the wire", wireMACProbe(path)},
	}
	if x.Attach == nil {
		list = append(list, check{"conntrack.inner", path, "the nodes that track the connection", innerTrackingProbe(path, x.Tracked)})
	}
	if t := x.wireTunnel(); t != nil && t.kind != "ipip" {
		list = append(list, check{"conntrack.outer", path, "the entries for packets of the tunnel", outerTrackingProbe(path, t)})
	}
	return append(list, policedChecks(x, path)...)
}

// policedChecks returns the checks of the policy chains that packets between two nodes pass.
func policedChecks(x expectation, path plan.Path) (list []check) {
	if x.policed {
		list = append(list,
			check{"policy.egress", path, "what the sending pod's chain cali-fw counts", policyCountersProbe(0, "cali-fw-", x.acceptingChain("cali-po-", "cali-pro-"), !x.alwaysNew)},
			check{"policy.ingress", path, "what the receiving pod's chain cali-tw counts", policyCountersProbe(1, "cali-tw-", x.acceptingChain("cali-pi-", "cali-pri-"), !x.alwaysNew)})
	}
	if x.Firewall {
		list = append(list,
			check{"firewall.egress", path, "what the sending pod's chain KUBE-POD-FW counts", firewallCountersProbe(0)},
			check{"firewall.ingress", path, "what the receiving pod's chain KUBE-POD-FW counts", firewallCountersProbe(1)})
	}
	if x.Agent {
		list = append(list,
			check{kind: "policy.programs", what: "the programs of the policy agent on the node's end of each pod's device", probe: probeAgentPrograms},
			check{"policy.tracked", path, "the pods whose programs of the policy agent have the connection in their table, and note its packets", probeAgentTable})
	}
	if x.policies > 0 && x.policed {
		list = append(list,
			check{"policy.walk.egress", path, "the number of policies that the sending pod's first packet walks", walkedPoliciesProbe(0, "cali-po-")},
			check{"policy.walk.ingress", path, "the number of policies that the receiving pod's first packet walks", walkedPoliciesProbe(1, "cali-pi-")})
	}
	return list
}

// acceptingChain returns the prefix of the chain that accepts a pod's new connection. This is the argument policy
// if policies select the pod, otherwise the argument profile.
func (x expectation) acceptingChain(policy, profile string) string {
	if x.policies > 0 {
		return policy
	}
	return profile
}

// expectedCarrier returns the encapsulation that the switch must see between nodes.
func (x expectation) expectedCarrier() string {
	t := x.wireTunnel()
	switch {
	case t == nil && x.Branches:
		return taggedCarrier
	case t == nil:
		return "plain"
	case t.kind == "ipip":
		return "ip protocol 4"
	}
	return fmt.Sprintf("%s udp %d vni %d", t.kind, t.port, t.vni)
}

// nodeChecks returns the checks of the state of nodes and pods.
func nodeChecks(x expectation) []check {
	list := []check{
		{kind: "mtu", what: "the MTU of pods, or of nodes with host-network pods", probe: probePodMTU},
		{kind: "offload", what: "segmentation and aggregation on the devices", probe: probeDeviceFeatures},
		{kind: "steering", what: "the CPUs that devices of nodes, pods and the client outside steer receive work to", probe: probeReceiveSteering},
		{kind: "switch.filtering", what: "whether netfilter filters the packets of the switch", probe: probeSwitchFiltering},
	}
	if x.long {
		list = append(list, check{kind: "big-tcp", what: "the largest super-packet that a device may send, in bytes", probe: probeSuperPackets})
	}
	if x.Attach != nil {
		list = append(list, attachChecks(x)...)
	}
	if t := x.tunnel; t != nil {
		if !t.esp {
			list = append(list, check{kind: "tunnel.device", what: "the tunnel device of each node", probe: tunnelDeviceProbe(t)})
		}
		if x.Diverted != "" {
			list = append(list, check{kind: "rules.encryption", what: "the entries of the routing policy of each node", probe: routingRulesProbe(x.Diverted)})
		}
		if t.esp {
			list = append(list, check{kind: "tunnel.states", what: "the states and policies of IPsec on each node", probe: probeIPsecStates})
		} else if t.sealed {
			list = append(list, check{kind: "tunnel.peers", what: "the peers of the tunnel device", probe: tunnelPeersProbe(t)})
		} else if t.kind == "vxlan" {
			list = append(list,
				check{kind: "tunnel.fdb", what: "forwarding entries of the tunnel device", probe: tunnelForwardingProbe(t)},
				check{kind: "tunnel.neighbour", what: "ARP entries of the tunnel device", probe: tunnelNeighboursProbe(t)})
		}
		if t.routed {
			list = append(list, check{kind: "mtu.route", what: "the MTU of the pods' default route", probe: probeRouteMTU})
		}
	}
	if x.nft || x.engine == condition.ProxyNftables {
		list = append(list, check{kind: "services.nft", what: "the ports of Services that kube-proxy serves, by nftables and by iptables", probe: probeProxyNFT})
	}
	if x.engine == condition.ProxyIPVS {
		list = append(list,
			check{kind: "services.ipvs", what: "addresses of Services on the node, virtual servers, and chains for Services in iptables", probe: probeProxyIPVS},
			check{kind: "services.ipvs.counted", what: "the use of the first node's virtual server for the other node's Service", probe: probeIPVSCounter})
	}
	if x.Blackhole != 0 {
		list = append(list, check{kind: "route.blackhole", what: "the route for unused addresses of a node's own range", probe: blackholeRouteProbe(x.Blackhole)})
	}
	if x.Remote != nil {
		list = append(list, check{kind: "route.remote", what: "the route to another node's pods", probe: probeRemoteRoute})
	}
	return list
}

// expectedClients returns the clients that the backend must see on a path, over TCP and over UDP. Both are who, unless
// x.Datagrams has another for UDP.
func (x expectation) expectedClients(path plan.Path, who dataplane.Client) [2]dataplane.Client {
	if udp, ok := x.Datagrams[path]; ok {
		return [2]dataplane.Client{who, udp}
	}
	return [2]dataplane.Client{who, who}
}

func attachChecks(x expectation) []check {
	var list []check
	if x.Attach.Gateway != dataplane.NoGateway {
		list = append(list,
			check{kind: "gateway", what: "the pods' default route", probe: probePodGateway},
			check{kind: "forwarding", what: "forwarding on the nodes", probe: nodeSysctlProbe(x.sysctlName("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"), "1")})
	}
	if x.Attach.Bridge != "" {
		filtering := "1"
		if x.unfiltered {
			filtering = "0"
		}
		list = append(list,
			check{kind: "bridge", what: "the bridge of the pods' devices", probe: bridgePortsProbe(x.Attach.Bridge)},
			check{kind: "bridge.filtering", what: "whether netfilter filters bridged packets on the nodes", probe: nodeSysctlProbe(x.sysctlName("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"), filtering)})
	}
	if x.netkit {
		list = append(list, check{kind: "pod.device", what: "the devices of each pod, in the pod and on its node, and their MAC addresses", probe: probeNetkitPairs})
	}
	if x.Firewall {
		list = append(list, check{kind: "rules.tunnel", what: "the routing rules of each node", probe: probeTunnelRule})
	}
	if x.PodRules {
		list = append(list, check{kind: "rules.pods", what: "the routing rules of each node", probe: probePodRules})
	}
	if x.Attach.HostMAC != "" {
		list = append(list, check{kind: "device.mac", what: "the MAC address of the node's end of each pod's device", probe: probeHostMAC})
	}
	if x.Attach.ProxyARP {
		list = append(list, check{kind: "proxy_arp", what: "whether the host side answers pods for any address (" + x.sysctlName("proxy_arp", "proxy_ndp") + ")", probe: probeProxyARP})
	}
	return list
}
