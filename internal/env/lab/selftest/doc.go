// Package selftest makes a profile of the lab prove on real packets that it is what it claims, before it may be
// measured.
//
// A lab that is built wrong still carries traffic: a tunnel falls back to a plain route, a chain is never reached, a
// super-packet crosses a wire that should have cut it. The numbers then look fine and mean something else. So each
// profile has a table of expectations in its folder (package expect has the words) that says what an observer of the real
// dataplane would see, and Run looks for exactly that:
//
//	on the wire       what carries a packet between nodes, how long the frame is, whose addresses and MAC it bears
//	at the receiver   the client's address as the backend sees it, the TTL that is left, no cluster address
//	in conntrack      which entries exist on which node, for the inner and for the outer packet, and what they translate
//	in netfilter      which chains count packets, and where pods bypass their node that none does
//	on the nodes      MTU, gateway and its MAC address, routes, neighbours, forwarding entries, sysctls, offloads
//	at Services       (where Options.TestServices adds some) who answers: nobody, always the same, all alike, all but one
//
// A table is written for the default conditions. What other conditions change of it is said by inIPv6, keptLocal and the
// fields that Run sets.
//
// The flow is: a scene (scene_linux.go) is the profile with captures open. On it every path of the table is tried
// (trial_linux.go) with one TCP and one UDP exchange (traffic_linux.go), and everything that was seen of them is kept.
// Then the table becomes a list of checks (checks_linux.go), and each check probes the scene (probe_*.go): what was seen
// on a path, what stands on a node, what a rule counts.
//
// Every assertion compares what is wanted with what was found, both as text, so that a table of them explains itself.
// Nothing stays behind: sockets are closed and the tables of connections are flushed.
package selftest
