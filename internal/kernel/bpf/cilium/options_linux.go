package cilium

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Identity is the identity of a packet's sender, independent of its address. Policies refer to it, and it is the VNI
// in a tunnel (24 bits).
type Identity uint32

// The reserved identities; pods usually have numbers from 256.
const (
	Any        Identity = 0 // in a Rule: any peer
	Host       Identity = 1 // the pod's own node
	World      Identity = 2 // every address that was not announced
	RemoteNode Identity = 6
)

// Proto is a transport protocol by its number in the IP header.
type Proto uint8

// The protocols that services and rules may name.
const (
	AnyProto Proto = 0 // in a Rule
	TCP      Proto = 6
	UDP      Proto = 17
)

// NodePort selects whether and how the node serves frontends to packets from the wire.
type NodePort int

// The ways to serve frontends to packets from the wire.
const (
	NodePortOff  NodePort = iota
	NodePortSNAT          // a backend on another node sees this node as the client; the reply returns through it
	NodePortDSR           // a backend on another node sees the client and answers it directly
)

// Options describe a node. The devices must exist when Load is called; their names are looked up in NS.
type Options struct {
	NS *netns.NS
	// NodeIP is the address of Wire. Gateway is the address of cilium_host, the pods' next hop. All addresses of the
	// node's tables, except the ends of tunnels, have the family of NodeIP.
	NodeIP, Gateway netip.Addr
	// Wire is the node's network device (eth0).
	Wire string
	// Overlay is the external VXLAN device; "" means native routing.
	Overlay string
	// Encryption applies to traffic between pods of different nodes, or with Overlay to everything in the tunnel. It is
	// only supported for IPv4, and not with Legacy.
	Encryption Encryption
	// Pair has the names of cilium_host and cilium_net.
	Pair [2]string
	// Legacy sends the packets to and from pods through the node's stack, instead of using redirect_peer and
	// redirect_neigh.
	Legacy bool
	// PacketLB translates services packet by packet at the pod's device, for pods that AttachCgroup does not cover.
	PacketLB bool
	// Masquerade is the prefix of destinations for which pods keep their source address. Packets of pods to other
	// destinations get NodeIP as their source. The zero prefix disables this translation.
	Masquerade netip.Prefix
	NodePort   NodePort
	// Maglev chooses backends for packets from outside by a table of 16,381 slots instead of at random.
	Maglev bool
	Sizes  Sizes
}

// Encryption selects how packets between nodes are encrypted. The zero value means no encryption.
type Encryption struct {
	// WireGuard is the WireGuard device, "" for none.
	WireGuard string
	// IPsec is the number of this node's key, 1 to 15, or 0 for none. The caller sets the kernel's states and
	// policies, and announces other nodes by SetNode.
	IPsec uint8
}

// Sizes are the capacities, in entries, of tables that the kernel allocates completely. Unless a field says otherwise,
// zero means the value of AgentSizes. Flow tables are LRU: a full table forgets the flow that was idle longest.
type Sizes struct {
	FlowsTCP int // 150 bytes each, 200 with IPv6
	FlowsAny int
	SNAT     int
	Stats    int // per CPU; the product's default is 65,536
	// Policy is the required capacity for the rules of a pod (bpf-policy-map-max). The table has room for at least the
	// product's 16,384.
	Policy int
	// Ports is the number of ports for source translation, from 32,768; at most and by default 32,768, as in the
	// product.
	Ports int
	// LB is the required capacity of each table of Services (bpf-lb-map-max). Each has room for at least the product's
	// 65,536.
	LB int
}

// AgentSizes returns the capacities that Cilium's agent chooses by default for this machine's memory. Flow tables share
// 0.25 % of it in proportion to their default sizes (bpf.mapDynamicSizeRatio). Each has a minimum. Smaller tables would
// stay in the CPU's cache and make connections look too cheap. Only Stats is smaller than the product's.
func AgentSizes() Sizes { return sizesFor(machineMemory()) }

func sizesFor(memory uint64) Sizes {
	const tcp, other, snat = 1 << 19, 1 << 18, 1 << 19
	// Bytes by the agent's formula: keys and values of IPv6; as many neighbours as translated sources; sockets.
	const whole = (tcp+other)*94 + snat*(94+24) + other*52
	share := func(normal, least uint64) int { return int(max(normal*(memory/400)/whole, least)) }
	return Sizes{FlowsTCP: share(tcp, 1<<17), FlowsAny: share(other, 1<<16), SNAT: share(snat, 1<<17), Stats: 1024}
}

// machineMemory returns the machine's memory in bytes, 0 if unknown. Each node of a lab assumes all of it.
func machineMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}

// allPorts is the number of ports from firstPort to 65,535.
const allPorts = 1<<16 - firstPort

func (s Sizes) withDefaults() Sizes {
	agent := AgentSizes()
	s.FlowsTCP, s.FlowsAny, s.SNAT = cmp.Or(s.FlowsTCP, agent.FlowsTCP), cmp.Or(s.FlowsAny, agent.FlowsAny), cmp.Or(s.SNAT, agent.SNAT)
	s.Stats, s.Ports = cmp.Or(s.Stats, agent.Stats), cmp.Or(s.Ports, allPorts)
	return s
}

func (o Options) check() error {
	var errs []error
	if o.NS == nil {
		errs = append(errs, errors.New("NS is missing"))
	}
	fam := familyOf(o.NodeIP)
	if !fam.has(o.NodeIP) {
		errs = append(errs, fmt.Errorf("NodeIP is %q, want an IPv4 or IPv6 address", o.NodeIP))
	}
	if !fam.has(o.Gateway) {
		errs = append(errs, fmt.Errorf("gateway is %q, want an %s address like NodeIP", o.Gateway, fam))
	}
	for name, d := range map[string]string{"Wire": o.Wire, "first device of Pair": o.Pair[0], "second device of Pair": o.Pair[1]} {
		if d == "" {
			errs = append(errs, fmt.Errorf("%s is not named", name))
		}
	}
	if o.Masquerade.IsValid() && !fam.has(o.Masquerade.Addr()) {
		errs = append(errs, fmt.Errorf("prefix %s of Masquerade is not %s, as NodeIP is", o.Masquerade, fam))
	}
	if o.NodePort == NodePortDSR && o.Overlay != "" {
		errs = append(errs, errors.New("a VXLAN tunnel cannot carry the DSR option: route natively or use SNAT"))
	}
	switch e := o.Encryption; {
	case e != Encryption{} && (isV6(o.NodeIP) || o.Legacy):
		errs = append(errs, errors.New("packets are encrypted in IPv4 with eBPF host routing only"))
	case e.IPsec != 0 && (o.Overlay != "" || e.WireGuard != ""):
		errs = append(errs, errors.New("IPsec is for native routing, without WireGuard"))
	}
	if p := o.Sizes.Ports; p < 0 || p > allPorts {
		errs = append(errs, fmt.Errorf("%d ports of source translation, want 1 to %d", p, allPorts))
	}
	return errors.Join(errs...)
}

// Endpoint is a pod of this node.
type Endpoint struct {
	// ID is the pod's slot in the table of policy programs: 1 to 65,534, unique on the node.
	ID       uint16
	Identity Identity
	IP       netip.Addr
	// Device is the host's end of the pod's pair of devices. MAC is the address of the pod's end.
	Device string
	MAC    net.HardwareAddr
	// Netkit means that the pair is of netkit devices at layer 3: Device is the primary one, and MAC is six zeros. It
	// excludes Legacy.
	Netkit bool
}

// Rule is one entry of an endpoint's policy. Traffic that no rule allows is denied. Of the matching rules, the one with
// the highest Precedence decides. Among equals, a denial decides before a permission, and then the more specific rule.
type Rule struct {
	Identity   Identity // of the peer; Any is any peer
	Egress     bool
	Proto      Proto  // AnyProto is every protocol
	Port       uint16 // destination; 0 is every port. Needs Proto
	Deny       bool
	Precedence uint32
}

// AllowAll returns the policy of an endpoint that no policy selects.
func AllowAll() []Rule { return []Rule{{}, {Egress: true}} }

// Service is a frontend with its backends.
type Service struct {
	Frontend netip.AddrPort
	Proto    Proto
	Backends []netip.AddrPort
	// NodePort serves the frontend to packets from the wire. Local restricts those packets to LocalBackends, the
	// backends on this node (externalTrafficPolicy Local); clients in the cluster use all Backends.
	NodePort      bool
	Local         bool
	LocalBackends []netip.AddrPort
	// Affinity keeps a client with its backend for this long after its last new flow, in whole seconds; 0 means none.
	Affinity time.Duration
}
