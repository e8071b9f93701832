package service

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// in6 is a where every byte of an IPv4 address has become a group of IPv6: 10.43.0.11 is fd00:10:43:0:11:: and so on.
func in6(a netip.Addr) netip.Addr {
	if !a.Is4() {
		return a
	}
	b := a.As4()
	return netip.MustParseAddr(fmt.Sprintf("fd00:%d:%d:%d::%d", b[0], b[1], b[2], b[3]))
}

func prefixIn6(p netip.Prefix) netip.Prefix {
	if !p.IsValid() {
		return p
	}
	return netip.PrefixFrom(in6(p.Addr()), 16+2*p.Bits()).Masked()
}

// configIn6 is the same configuration for a kube-proxy of IPv6.
func configIn6(c Config) Config {
	c.IPv6 = true
	c.ClusterCIDR, c.ServiceCIDR = prefixIn6(c.ClusterCIDR), prefixIn6(c.ServiceCIDR)
	if c.NodePortAddr.IsValid() {
		c.NodePortAddr = in6(c.NodePortAddr)
	}
	c.Services = allIn6(c.Services, func(s Service) Service {
		s.VIP = in6(s.VIP)
		s.Endpoints = allIn6(s.Endpoints, func(e Endpoint) Endpoint {
			e.Addr = netip.AddrPortFrom(in6(e.Addr.Addr()), e.Addr.Port())
			return e
		})
		s.LoadBalancerIPs = allIn6(s.LoadBalancerIPs, in6)
		return s
	})
	return c
}

func allIn6[T any](list []T, in6 func(T) T) []T {
	var out []T
	for _, v := range list {
		out = append(out, in6(v))
	}
	return out
}

func TestEveryKindOfServiceInIPv6(t *testing.T) {
	c := configIn6(every())
	golden.Check(t, "every-v6.rules", []byte(render(c).String()))
	n := configIn6(everyNFT())
	table := NFTables(n)
	if err := table.Check(); err != nil {
		t.Error(err)
	}
	golden.Check(t, "every-v6.nft", []byte(table.String()))
}

// TestIPv6SaysTheSame: but for addresses, the border of the loopback and kubelet's rule about it, both versions of IP have
// the same chains with as many rules.
func TestIPv6SaysTheSame(t *testing.T) {
	sizes := func(c Config) map[string]int {
		r := ruleset.New()
		AddKubelet(r, c.IPv6)
		Add(r, c)
		if err := ruletest.Check(r); err != nil {
			t.Error(err)
		}
		out := map[string]int{}
		for _, table := range r.Tables() {
			for _, chain := range table.Chains() {
				name := chain.Name
				if strings.HasPrefix(name, "KUBE-SEP-") {
					name = "KUBE-SEP" // its name has the address in it
				}
				out[table.Name+"/"+name] += len(chain.Rules())
			}
		}
		return out
	}
	in4, in6 := sizes(every()), sizes(configIn6(every()))
	in4["filter/"+chainFirewall]--
	in4["filter/INPUT"]--
	in4["filter/OUTPUT"]--
	for name, n := range in4 {
		if in6[name] != n {
			t.Errorf("%s has %d rules in IPv6, want %d", name, in6[name], n)
		}
	}
}

func TestSettingsOfIPv6(t *testing.T) {
	s := Sysctls(Config{IPv6: true})
	if s["net/ipv6/conf/all/forwarding"] != "1" || s["net/netfilter/nf_conntrack_tcp_timeout_established"] != "86400" {
		t.Errorf("settings %v", s)
	}
	for name := range s {
		if strings.HasPrefix(name, "net/ipv4/") {
			t.Errorf("a kube-proxy of IPv6 sets %s", name)
		}
	}
}
