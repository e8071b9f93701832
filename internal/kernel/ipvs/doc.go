// Package ipvs programs the kernel's own load balancer (IP Virtual Server) of a network namespace by netlink: virtual
// servers, each an address, a protocol and a port, and the backends behind them.
//
//	err := ipvs.Apply(ns, []ipvs.Server{{
//		Protocol: ipvs.TCP, Addr: netip.MustParseAddrPort("10.96.0.10:80"),
//		Backends: []netip.AddrPort{netip.MustParseAddrPort("10.244.1.2:8080")},
//	}})
//	list, err := ipvs.List(ns)
//
// Servers distribute connections round robin and translate addresses (masquerading, in IPVS's terms), as kube-proxy's
// do. They only handle packets to or from a process of the namespace, so each address must be one of the namespace's
// own.
package ipvs
