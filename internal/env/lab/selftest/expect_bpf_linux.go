package selftest

import "github.com/cnibench/cnibench/internal/plan"

// programmed is what BPF programs do with packets on their way.
type programmed struct {
	// vip is where a Service's own address is seen: "nowhere" when sockets translate.
	vip string
	// doorstep is how much of the traffic to a pod passes the node's end of the pod's device; doorstepSame the same of
	// traffic from a pod of its node, "" for no difference.
	doorstep, doorstepSame string
	// forwards says that the node's stack forwards what crosses between nodes.
	forwards bool
	// entered is how a packet from outside comes to the other node's backend, and the reply back. In words like those of
	// the probe "way"; BACKEND stands for the identity of the pod that answers.
	entered string
	// maglev says that every node chooses the same backend for the same client.
	maglev bool
	// mute says that a datagram to a Service without endpoints is dropped and nobody told.
	mute bool
	// option says which packets bring the frontend along in an IP option.
	option string
}

// How much of the traffic to a pod passes the node's end of its device.
const (
	peerOnly = "nothing"
	openers  = "the first packets of a flow"
	allOfIt  = "every packet"
)

// bySockets are Cilium's paths: everybody knows the Service before the first packet, so a pod that calls itself never
// leaves. near is the node towards its own pods, far towards the others'; entry who a backend elsewhere takes the client
// outside for.
func bySockets(near, far, entry witness) map[plan.Path]witness {
	return paths(direct, entering(near, far), unmasqueraded, map[plan.Path]witness{
		extPortLocal: client, extPortRemote: entry, podExternal: clientNode, podSelf: client,
	})
}

// ciliumAttach: the pods' gateway is the address of cilium_host, which the program of the pod's device answers for.
var ciliumAttach = attachment{gateway: firstAddress, sameTTL: 63, crossTTL: 62}

// A packet for a tunnel is forwarded by the programs of the receiving node alone.
var calicoBPFAttach = attachment{gateway: linkLocal, sameTTL: 63, crossTTL: 63, proxyARP: true}

// calicoBPFPaths: a node's own datagrams to a Service are sent from the node's address, its connections from the
// address towards the pod that was chosen.
var (
	calicoBPFPaths = paths(direct, entering(clientNode, tunnelEnd), masqueraded, map[plan.Path]witness{
		extPortLocal: client, extPortRemote: client, podSelf: client,
	})
	calicoBPFDatagrams = map[plan.Path]witness{hostSvcRemote: clientNode, podSelf: clientNode}
	calicoBPFTunnel    = &tunnel{device: "vxlan.calico", port: 4789, vni: 4096, external: true}
)
