// Package calico is an eBPF dataplane that does, per packet, the work that Calico 3.32 does in eBPF mode: the same
// hooks, helpers, tail calls and kinds of table lookup. It is written for measuring, from the outside behaviour; it has
// no agent. A node handles IPv4 or IPv6, as its address is; the programs are compiled for each.
//
// What an established flow costs, without a service:
//
//	tail calls             preamble > main
//	scratch (per CPU)      state 2
//	flow                   LRU hash 1, without direction (2 with NAT_FWD)
//	destination            nothing on the same node: the device is in the flow; routes LPM 1 otherwise
//	counters (per CPU)     1
//	last                   redirect_peer | fib_lookup + redirect_neigh | set_tunnel_key + redirect
//
// A new flow adds a frontend LPM lookup and a backend hash lookup, routes LPM 2 (source, destination), the generated
// policy program, and one flow entry (two behind a service). Policy judges every TCP SYN again. A SYN that finds a flow
// with FIN or RST from both sides deletes its entries and opens a new flow. With DSR the called node sees the client's
// side only, so it keeps forwarding a reused port to the same node, and that node opens the new flow.
//
// A pod that is its own backend (pod-to-self) would drop a packet from its own address. The programs translate such a
// flow, mark it 0x3600000 and pass it to the stack. Netfilter masquerades it on the way back to the pod. The answer
// returns to the node, where conntrack and to_workload restore both addresses. As in Calico, this applies to UDP only:
// connect() translates TCP, so a TCP connection of a pod to itself stays inside the pod.
//
// # Raising a node
//
// The caller makes namespaces, devices, addresses and routes; this package handles only tables and hooks.
//
//  1. Devices in the node: the wire (eth0) with a default route; for tunnels an external VXLAN device on port 4789
//     with an address from the node's block, and routes for the other nodes' blocks to it (mtu 1450) with the ARP
//     entries they need. Pods: veth pair, host end up with rp_filter 0 and proxy_arp 1, a /32 route to it; in the pod
//     the address as /32, 169.254.1.1 on the link and the default route via it. With IPv6: /128, and the default route via
//     the link-local address of the host end (fe80::ecee:eeff:feee:eeee for the MAC ee:ee:ee:ee:ee:ee), which answers for
//     itself; route mtu 1430; forwarding 1 on every device.
//  2. Load: programs on the wire and the tunnel device; tables of the node.
//  3. AddWorkload for each pod.
//  4. SetRoute: LocalHost for each further address of the node (the tunnel device's), RemoteHost for each other node,
//     Tunneled or RemoteWorkload with NextHop for each other node's block, Pool for what is not masqueraded.
//  5. SetService, SetIPSet, SetPolicy, as wanted; AttachCgroup with the cgroup v2 directory that holds the node's and
//     its pods' processes, for TCP services. UDP services of pods are translated on the pod's device.
//  6. The rules of netfilter that remain: accept what carries 0x3000000, masquerade 0x3800000 (pods with NATOutgoing) and
//     0x3600000 (pods to themselves), do not track VXLAN.
//  7. Close. Nothing is pinned, so the end of the process does the same.
//
// For NodePort, call SetService with each node's address and port on all nodes, the backends of the node itself as
// Local. The tunnel between nodes takes 50 bytes, with IPv6 70: the client's path must have an MTU of 1450 (1430) or
// the wire one of 1550 (1570), or full packets are dropped and counted.
//
// Packets that maintain an IPv6 link (neighbour and router discovery, multicast listener reports) pass every hook
// unchanged. On the node's own devices, so do all packets to a link-local address.
//
// # Closing
//
// To attach a program to a device or detach it, the kernel waits for an RCU grace period (about 15 ms) while it holds
// the lock over all devices. So a pod costs two grace periods, and several threads do not help. To detach a
// program from a device that is gone, the kernel does not wait.
//
// What is left out: both families at once, host endpoints' policy, XDP, UDP in sendmsg() and recvmsg() (off in the
// product's default too), IPv4 addresses in IPv6 sockets, the ICMP error for packets too big for the tunnel, the
// translation of addresses inside ICMP errors, fragments after the first from pods, and the collector of ended flows.
package calico

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types mains main.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types mains6 main.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPVER6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types preamble preamble.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types preamble6 preamble.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPVER6
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types connect connect.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux -no-global-types connect6 connect.bpf.c -- -I../include -Wall -Werror -mcpu=v3 -DIPVER6
