package selftest

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// expectation is what an observer of an instance must find: what its profile's folder and record say, and what the lab's
// conditions change.
type expectation struct {
	expect.Expectation
	// tunnel is nil when pods' packets cross the wire as they are.
	tunnel *tunnel
	// policed says whether Calico's chains of both pods count packets between them. nft says that those chains and
	// kube-proxy's are in nftables, and none of them in iptables.
	policed, nft bool
	// netkit says that a pair of netkit devices connects a pod to its node.
	netkit bool

	// ipv6 says that all addresses are IPv6; see inIPv6.
	ipv6 bool
	// proxyNFT and proxyIPVS say that kube-proxy is in nftables or ipvs mode.
	proxyNFT, proxyIPVS bool
	// local says that the Services' externalTrafficPolicy is Local; see keptLocal.
	local bool
	// testServices says that there are Services for the self-test alone.
	testServices bool
	// unbacked says that the programs drop packets for a Service because it has no backend for them.
	unbacked bool
	// policies is how many policies select every pod.
	policies int
}

// tunnel is the device that encapsulates, and what its packets look like.
type tunnel struct {
	device, device6 string
	port, vni       int
	// tracked says that the outer packets are tracked.
	tracked bool
	// ipip says that it is IP in IP, sealed that it is WireGuard: the wire shows no inner addresses and ports.
	ipip, sealed bool
	// external says that VNI and addresses come with each packet; routed is expect.Expectation.RouteMTU.
	external, routed bool
}

// expected returns what must be found of a profile in a lab of IPv4 with the default conditions.
func expected(p profile.Profile, x expect.Expectation) expectation {
	full := expectation{
		Expectation: x, netkit: p.PodDevice == "netkit",
		policed: strings.HasPrefix(p.Policy, "calico-"), nft: p.Policy == "calico-nftables",
	}
	if t := p.Tunnel; t != nil {
		full.tunnel = &tunnel{
			device: t.Devices[0], device6: t.Device6, port: t.Port, vni: t.VNI, tracked: x.TunnelTracked,
			ipip: t.Kind == "ipip", sealed: t.Kind == "wireguard", external: t.External, routed: x.RouteMTU,
		}
	}
	return full
}

func (x expectation) switched() bool { return x.Attach != nil && x.Attach.Switched }

// remoteDevice returns the device of the route to another node's pods.
func (x expectation) remoteDevice() string {
	if x.Remote.Device == "" {
		return x.tunnel.device
	}
	return x.Remote.Device
}

// keptLocal is what is to be found when the Services' externalTrafficPolicy is Local: the backend sees the client outside,
// and the node that is called uses no backend elsewhere.
func (x expectation) keptLocal() expectation {
	x.local, x.Served, x.Refused = true, maps.Clone(x.Served), slices.Clone(x.Refused)
	if _, ok := x.Served[expect.ExtPortRemote]; ok {
		delete(x.Served, expect.ExtPortRemote)
		x.unbacked = x.Programs != nil
		x.Refused = append(x.Refused, expect.ExtPortRemote)
	}
	if _, ok := x.Served[expect.ExtPortLocal]; ok {
		x.Served[expect.ExtPortLocal] = expect.Own
	}
	if x.switched() {
		// The pod answers the client itself, from an address that the client did not call.
		delete(x.Served, expect.ExtPortLocal)
		x.Refused = append(x.Refused, expect.ExtPortLocal)
	}
	return x
}

// balanced adds the path to a load balancer, by what is to be found on those to node ports: the balancer's address is that
// of the first node, and with the policy Local that of the node with the backend.
func (x expectation) balanced() expectation {
	like := expect.ExtPortRemote
	if x.local {
		like = expect.ExtPortLocal
	}
	if who, ok := x.Served[like]; ok && !x.proxyIPVS {
		x.Served = maps.Clone(x.Served)
		x.Served[expect.ExtBalanced] = who
	}
	return x
}

// inIPv6 is what is to be found of a profile in a lab of IPv6: the same, but for names and for how a node chooses the
// address that it sends from.
func (x expectation) inIPv6() expectation {
	x.ipv6 = true
	// On a node without kube-proxy it is kubelet's rule about the loopback that makes the kernel track connections, and in
	// IPv6 there is none.
	x.TrackedBetween = false
	if x.tunnel != nil {
		t := *x.tunnel
		if t.device6 != "" {
			t.device = t.device6
		}
		if t.sealed {
			t.port++ // on a dual-stack node there is one for each version
		}
		x.tunnel = &t
	}
	if x.tunnel == nil || x.Attach == nil || x.Attach.Gateway != expect.LinkLocal {
		return x
	}
	// The node's end of a Calico pod's link has no address of its own. Among the node's others IPv6 takes the one that has
	// most in common with the destination (RFC 6724, rule 8), and that is the tunnel's.
	x.Served = maps.Clone(x.Served)
	for _, p := range []plan.Path{expect.HostPodSame, expect.HostSvcLocal, expect.ExtPortLocal, expect.PodSelf} {
		if who, ok := x.Served[p]; ok && who == expect.Node {
			x.Served[p] = expect.TunnelEnd
		}
	}
	if x.Programs != nil {
		// The routes by which the node's own datagrams come to a Service name the address to send from.
		x.Datagrams = maps.Clone(x.Datagrams)
		x.Datagrams[expect.HostSvcLocal] = expect.Node
		x.Datagrams[expect.PodSelf] = expect.TunnelEnd
	}
	return x
}

// setting is the name of a setting that both versions of IP have.
func (x expectation) setting(in4, in6 string) string {
	if x.ipv6 {
		return in6
	}
	return in4
}
