// Package cilium is an eBPF dataplane that does, per packet, the work that Cilium 1.20 does: the same hooks, helpers,
// tail calls and kinds of table lookup. It is written for measuring, from the outside behaviour; it has no agent.
//
// A node handles IPv4 or IPv6, the family of its address. The programs of both are compiled from the same C code
// (l3.h). IPv6 does the same lookups, with keys of 16 bytes for an address.
//
// What an established flow costs, without a service:
//
//	                       forward                                    reply
//	tail calls             from_container > handle_ip > policy        the same
//	scratch (per CPU)      3                                          3
//	flow, source side      LRU hash 2 (turned key misses)             1
//	identity               ipcache LPM 1                              1
//	policy, source side    LPM 2, policystats per-CPU LRU 1           0
//	destination            endpoint hash 1                            1
//	flow, destination      LRU hash 2                                 1
//	policy, destination    LPM 2, policystats 1                       0
//	metrics (per CPU)      1 per direction                            1 per direction
//	event                  at the exit and at the pod, for the first packet with a TCP flag and every 5 s
//	last                   redirect_peer | fib_lookup + redirect_neigh | set_tunnel_key + redirect
//
// A packet that enters a node adds one lookup of a frontend, one of translated sources, one of metrics, and two tail
// calls, unless it is for a frontend. A packet that leaves by the wire adds two lookups of flows, one of endpoints, and a
// tail call; with a tunnel it adds one lookup of flows.
//
// With WireGuard, a pod's packet for another node adds a mark and, at the wire, one ipcache lookup. It is redirected to
// the WireGuard device, which adds one flow lookup. The encrypted packet passes the wire's program without a lookup. It
// enters the other node twice: encrypted, like any packet for the node, and decrypted, with the lookups of a packet that
// enters a node. With IPsec, the packet adds one lookup of nodes and one of the key, and passes the stack by cilium_net.
// At the other node it adds one lookup of nodes when it enters, and passes cilium_host after it is decrypted.
//
// Between nodes, the lookups of the destination run at the other node: in from_netdev (one ipcache lookup more), in
// from_overlay (the identity is the VNI), or, with Legacy, in from_host behind that node's stack. PacketLB adds a
// service lookup to every packet of a pod, a service flow for those that match, and one tail call.
//
// # Raising a node
//
// The caller makes namespaces, devices, addresses and routes; this package handles only tables and hooks.
//
//  1. Devices in the node: the wire (eth0), the pair cilium_host and cilium_net (veth, no ARP, up, rp_filter 0,
//     forwarding and accept_local 1; the pods' gateway address as /32 on cilium_host), and for tunnels an external
//     VXLAN device on port 8472. Routes: the gateway's /32 and the node's own pod prefix via it to cilium_host; other
//     nodes' prefixes via cilium_host (mtu 1450) with a tunnel, via their node's address on eth0 without. With IPv6
//     addresses are /128 and forwarding is net.ipv6.conf.all.forwarding; routes to cilium_host have no next hop (Linux
//     refuses one that is its own address, and makes the gateway's /128 itself); a tunnel between IPv6 nodes takes 70
//     bytes, between IPv4 nodes 50, whatever the pods speak.
//  2. Load: programs on the wire, the overlay and the pair; tables of the node.
//  3. AddEndpoint for each pod, after its veth pair is there: host end up with rp_filter 0, in the pod its address as
//     /32, the gateway on the link and the default route via it. The pod's ARP, or neighbour solicitation, for the
//     gateway is answered by BPF; a netkit pair sends no such request. No route for the pod's address is needed on the node.
//  4. SetIPCache for each pod of other nodes (its identity, and the node's address if tunnelled), for the other nodes
//     themselves (RemoteNode, no tunnel) and their gateways (RemoteNode, tunnelled if the pods are).
//  5. SetService, SetPolicy, as wanted; AttachCgroup with the cgroup v2 directory that holds the node's and its pods'
//     processes, for service translation in sockets. One cgroup per node: attached higher up, one node's services
//     would be all nodes'.
//  6. Close. Nothing is pinned, so the end of the process does the same.
//
// For NodePort, call SetService with each address and port that is served (the node's own address is one), on every
// node, NodePort set. DSR packets are longer than the client's first, by 8 bytes in IPv4 and 24 in IPv6: leave room.
// Counters have the reasons for dropped packets; a run with drops is not a measurement. The programs end a pod's
// link-local IPv6 packets (router solicitations, group reports) at its device, as Cilium does, and do not count them as
// drops.
//
// Left out: both families in one plane, host firewall, L7 proxy, node encryption, bandwidth manager, a reader of the
// events, XDP, endpoint routes (so the primary end of a netkit pair and a veth's egress have no program, as in Cilium
// without them), and the collector of ended flows: the tables are LRU, and ended flows stay until their room is needed.
package cilium

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux host host.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux lxc lxc.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types wireguard wireguard.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux sock sock.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types host6 host.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types lxc6 lxc.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types sock6 sock.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPV6
