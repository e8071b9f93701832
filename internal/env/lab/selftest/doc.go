// Package selftest proves with real packets that an instance is the dataplane that its profile claims, before a run
// measures it.
//
// A faulty lab still carries traffic: a tunnel falls back to a plain route, a chain is never reached, a super-packet
// crosses a wire that should segment it. The numbers look fine and mean something else. The folder of each profile
// therefore has a table of expectations (see dataplane.Expectation): what an observer of the real dataplane would see. Run
// checks:
//
//	on the wire       encapsulation between nodes, length of frames, IP and MAC addresses
//	at the receiver   the client's address as the backend sees it, the remaining TTL, no cluster address
//	in conntrack      the entries of each node, for inner and outer packets, and their translations
//	in netfilter      which chains count packets; none where pods bypass their node
//	on the nodes      MTU, gateway and its MAC address, routes, neighbours, forwarding entries, sysctls, offloads
//	at Services       (with Options.TestServices) the backends that answer: none, always the same, all, all but one
//
// A table describes the default conditions. withIPv6, withLocalPolicy and the fields that Run sets adapt it to others.
//
// A scene (scene_linux.go) is the instance with open captures. Every path of the table is tried (trial_linux.go) with
// one TCP and one UDP exchange (traffic_linux.go), and the frames are kept. The table then becomes a list of checks
// (checks_linux.go), and each check probes the scene (probe_*.go): frames on a path, the state of a node, counters.
//
// Every assertion compares what is wanted with what was found, both as text. At the end all sockets are closed and the
// conntrack tables are flushed.
package selftest
