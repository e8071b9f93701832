// Package link makes network devices, addresses, routes and neighbours inside namespaces, sets what a device offloads
// and how fast it sends, and reads all of it back. It knows netlink and ethtool, but not the purpose of a device.
//
//	node, err := link.Open(ns)                       // one netlink socket inside ns; not for concurrent use
//	err = node.Add(                                  // in this order, until one fails
//		link.Veth{Name: "veth1", Peer: "eth0", PeerIn: pod, MTU: 1500},
//		link.Route{To: prefix, Dev: "veth1", LinkScope: true},
//	)
//	cut, err := node.SegmentationOff(nil)            // no super-packets on any device but lo
//	node.Close()
//
// Devices, except a Dummy, are up when the call that makes them returns. Every error names its device or entry, and an
// error about a missing kernel feature has advice (package advice).
package link
