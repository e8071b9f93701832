package service

import (
	"net/netip"
)

// family has the differences between the rules for IPv4 and IPv6.
type family struct {
	// localhost holds the addresses of the loopback.
	localhost netip.Prefix
	// forwarding is the setting that makes a machine a router.
	forwarding string
}

var (
	ipv4 = family{netip.MustParsePrefix("127.0.0.0/8"), "net/ipv4/ip_forward"}
	ipv6 = family{netip.MustParsePrefix("::1/128"), "net/ipv6/conf/all/forwarding"}
)

func (c Config) family() family {
	if c.IPv6 {
		return ipv6
	}
	return ipv4
}

// alone returns the prefix with only a.
func alone(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }
