// Package calico is an eBPF dataplane that does, per packet, the work that Calico 3.32 does in eBPF mode: the same hooks,
// helpers, tail calls and kinds of table lookup. It is written for measuring, from the outside behaviour; it has no
// agent, and IPv4 only.
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
// policy program, and one flow entry (two behind a service). Every TCP SYN is judged by policy again.
//
// # Raising a node
//
// The caller makes namespaces, devices, addresses and routes; this package only what lies in tables and on hooks.
//
//  1. Devices in the node: the wire (eth0) with a default route; for tunnels an external VXLAN device on port 4789
//     with an address from the node's block, and routes for the other nodes' blocks to it (mtu 1450) with the ARP
//     entries they need. Pods: veth pair, host end up with rp_filter 0 and proxy_arp 1, a /32 route to it; in the pod
//     the address as /32, 169.254.1.1 on the link and the default route via it.
//  2. Load: programs on the wire and the tunnel device; tables of the node.
//  3. AddWorkload for each pod.
//  4. SetRoute: LocalHost for each further address of the node (the tunnel device's), RemoteHost for each other node,
//     Tunneled or RemoteWorkload with NextHop for each other node's block, Pool for what is not masqueraded.
//  5. SetService, SetIPSet, SetPolicy, as wanted; AttachCgroup with the cgroup v2 directory that holds the node's and
//     its pods' processes, for TCP services. UDP services of pods are translated on the pod's device.
//  6. The rules of netfilter that remain: accept what carries 0x3000000, masquerade 0x3800000 (pods with NATOutgoing),
//     do not track VXLAN.
//  7. Close. Nothing is pinned, so the end of the process does the same.
//
// For NodePort, call SetService with each node's address and port on all nodes, the backends of the node itself as
// Local. The tunnel between nodes takes 50 bytes: the client's path must have an MTU of 1450 or the wire one of 1550,
// or full packets are dropped and counted.
//
// What is left out: IPv6, host endpoints' policy, XDP, the ICMP error for packets too big for the tunnel, a pod's UDP to a
// service that only it serves, fragments after the first from pods, and the collector of ended flows.
package calico

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux mains main.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux preamble preamble.bpf.c -- -I../include -Wall -Werror -mcpu=v3
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -target bpfel -tags linux connect connect.bpf.c -- -I../include -Wall -Werror -mcpu=v3
