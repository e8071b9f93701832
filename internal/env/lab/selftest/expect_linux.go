package selftest

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
)

// expectation is what an observer of an instance must find. It follows from the profile's table of expectations, its
// record in package profile, and the conditions of the lab.
type expectation struct {
	dataplane.Expectation
	// tunnel is nil without encapsulation.
	tunnel *tunnel
	// policed says that Calico's chains of two pods count the packets between them.
	policed bool
	// nft says that the chains of Calico and kube-proxy are in nftables instead of iptables.
	nft bool
	// netkit says that a pair of netkit devices connects a pod to its node.
	netkit bool

	// ipv6 says that all addresses are IPv6; see withIPv6.
	ipv6 bool
	// engine names what serves Services on the nodes: a mode of kube-proxy, "ebpf", lab.FileServices or "none".
	engine condition.ProxyMode
	// local says that the Services' externalTrafficPolicy is Local; see withLocalPolicy.
	local bool
	// testServices says that Services exist for the self-test.
	testServices bool
	// unbacked says that programs drop packets for a Service without backends.
	unbacked bool
	// plugged says that CNI plugins connect the pods.
	plugged bool
	// alwaysNew says that no connection between pods is tracked, so that policies see every packet as new.
	alwaysNew bool
	// unfiltered says that netfilter does not see what the pods' bridge switches.
	unfiltered bool
	// merges says that nodes merge the frames that they receive.
	merges bool
	// long says that super-packets are longer than 64 KiB.
	long bool
	// flowtable is the number of packets after which a connection bypasses the nodes' rules by a flowtable. 0 means
	// never.
	flowtable int
	// policies is the number of policies that select every pod.
	policies int
}

// tunnel describes the device that encapsulates, and its packets.
type tunnel struct {
	device, device6 string
	port, vni       int
	// tracked means that conntrack has entries for the outer packets.
	tracked bool
	// inside is the length of the headers that another encapsulation adds before the tunnel encrypts, in bytes.
	inside int
	// kind is Kind of profile.Tunnel, such as "vxlan".
	kind string
	// sealed means that the tunnel encrypts: the wire shows no inner addresses and ports.
	sealed bool
	// esp means that IPsec encrypts. Then there is no device, and the ends of the tunnel are the pods' gateways.
	esp bool
	// external means that VNI and outer addresses come with each packet instead of from the device.
	external bool
	// routed means that routes set the MTU of pods and the outer addresses, instead of devices and neighbour entries.
	routed bool
	// spare means that packets between nodes do not use the tunnel.
	spare bool
}

// newExpectation returns the expectation for a profile in an IPv4 lab with the default conditions.
func newExpectation(p profile.Profile, x dataplane.Expectation) expectation {
	full := expectation{
		Expectation: x, netkit: p.PodDevice == "netkit",
		policed: strings.HasPrefix(p.Policy, "calico-"), nft: p.Policy == "calico-nftables",
	}
	if t := p.Tunnel; t != nil {
		full.tunnel = &tunnel{
			device: slices.Concat(t.Devices, []string{""})[0], device6: t.Device6, port: t.Port, vni: t.VNI, tracked: x.TunnelTracked,
			kind: t.Kind, sealed: t.Kind == "wireguard" || t.Kind == "ipsec", esp: t.Kind == "ipsec", external: t.External, routed: x.RouteMTU, spare: t.Spare > 0, inside: t.Inside,
		}
	}
	return full
}

// wireTunnel returns the tunnel of packets between nodes. It returns nil if these packets are not encapsulated.
func (x expectation) wireTunnel() *tunnel {
	if x.tunnel != nil && x.tunnel.spare {
		return nil
	}
	return x.tunnel
}

func (x expectation) isSwitched() bool { return x.Attach != nil && x.Attach.Switched }

// remoteDevice returns the device of the route to another node's pods.
func (x expectation) remoteDevice() string {
	if x.Remote.Device == "" {
		return x.tunnel.device
	}
	return x.Remote.Device
}

// withLocalPolicy returns x for externalTrafficPolicy Local. The backend then sees the external client's address, and the
// entered node uses only its own backends.
func (x expectation) withLocalPolicy() expectation {
	x.local, x.Served, x.Refused = true, maps.Clone(x.Served), slices.Clone(x.Refused)
	if _, ok := x.Served[dataplane.ExtPortRemote]; ok {
		delete(x.Served, dataplane.ExtPortRemote)
		x.unbacked = x.Programs != nil
		x.Refused = append(x.Refused, dataplane.ExtPortRemote)
	}
	if _, ok := x.Served[dataplane.ExtPortLocal]; ok {
		x.Served[dataplane.ExtPortLocal] = dataplane.OwnAddress
	}
	if x.isSwitched() || x.Strict {
		// The pod replies directly, from an address that the client did not dial.
		delete(x.Served, dataplane.ExtPortLocal)
		x.Refused = append(x.Refused, dataplane.ExtPortLocal)
	}
	return x
}

// withoutTracking returns x for a lab that does not track connections between pods.
func (x expectation) withoutTracking() expectation {
	x.Tracked, x.TrackedBetween, x.alwaysNew = false, false, true
	if x.tunnel != nil && !x.tunnel.sealed {
		t := *x.tunnel
		t.tracked, x.tunnel = false, &t
	}
	x.Served = maps.Clone(x.Served)
	maps.DeleteFunc(x.Served, func(p plan.Path, _ dataplane.Client) bool { return p.ByService() && x.Programs == nil })
	return x
}

// withUnfilteredBridge returns x for bridge-netfilter=off: netfilter does not see what the pods' bridge switches. Without
// such a bridge, x is unchanged.
func (x expectation) withUnfilteredBridge() expectation {
	if x.Attach == nil || x.Attach.Bridge == "" {
		return x
	}
	x.unfiltered, x.TrackedBetween, x.Tracked = true, x.Tracked, false
	x.Served, x.Refused = maps.Clone(x.Served), []plan.Path{dataplane.PodSvcLocal}
	delete(x.Served, dataplane.PodSvcLocal)
	if !x.alwaysNew {
		x.Served[dataplane.PodSelf] = dataplane.FirstOfRange
	}
	return x
}

// withBalancer returns x with the path to a load balancer. That path must behave like a node port path through the
// first node. With externalTrafficPolicy Local, it must behave like one through the backend's node.
func (x expectation) withBalancer() expectation {
	like := dataplane.ExtPortRemote
	if x.local {
		like = dataplane.ExtPortLocal
	}
	if who, ok := x.Served[like]; ok && x.engine != condition.ProxyIPVS {
		x.Served = maps.Clone(x.Served)
		x.Served[dataplane.ExtBalanced] = who
	}
	return x
}

// withIPv6 returns x for an IPv6 lab. Some names differ there, and nodes choose other source addresses.
func (x expectation) withIPv6() expectation {
	x.ipv6 = true
	// Without kube-proxy, conntrack is on because of kubelet's rule for the loopback. In IPv6 this rule does not exist.
	x.TrackedBetween = false
	if x.tunnel != nil {
		t := *x.tunnel
		if t.device6 != "" {
			t.device = t.device6
		}
		if t.sealed {
			t.port++ // flannel uses another port for IPv6
		}
		x.tunnel = &t
	}
	if x.tunnel == nil || x.Attach == nil || x.Attach.Gateway != dataplane.LinkLocal {
		return x
	}
	// The node's end of a Calico pod's link has no address. IPv6 then chooses the node's address with the longest common
	// prefix (RFC 6724, rule 8), which is the tunnel's.
	x.Served = maps.Clone(x.Served)
	for _, p := range []plan.Path{dataplane.HostPodSame, dataplane.HostSvcLocal, dataplane.ExtPortLocal, dataplane.PodSelf} {
		if who, ok := x.Served[p]; ok && who == dataplane.NodeAddress {
			x.Served[p] = dataplane.TunnelEnd
		}
	}
	if x.Programs != nil {
		// The routes to Services set the source address of the node's own datagrams.
		x.Datagrams = maps.Clone(x.Datagrams)
		x.Datagrams[dataplane.HostSvcLocal] = dataplane.NodeAddress
		x.Datagrams[dataplane.PodSelf] = dataplane.TunnelEnd
	}
	return x
}

// sysctlName returns the name of a sysctl: in6 for an IPv6 lab, otherwise in4.
func (x expectation) sysctlName(in4, in6 string) string {
	if x.ipv6 {
		return in6
	}
	return in4
}
