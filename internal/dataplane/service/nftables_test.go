package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// everyNFT is every with what only the nftables mode asks for.
func everyNFT() Config {
	c := every()
	c.NodePortAddr = addr("172.18.0.11")
	c.ServiceCIDR = netip.MustParsePrefix("10.43.0.0/16")
	return c
}

func TestNFTablesOfEveryKindOfService(t *testing.T) {
	none := everyNFT()
	none.Services = nil
	for name, c := range map[string]Config{"every.nft": everyNFT(), "none.nft": none} {
		t.Run(name, func(t *testing.T) {
			table := NFTables(c)
			if err := table.Check(); err != nil {
				t.Error(err)
			}
			golden.Check(t, name, []byte(table.String()))
		})
	}
}

// TestNFTablesLeavesNothingHanging: every chain is reached by a base chain, through jumps and maps, and everything that a
// rule or map names is declared.
func TestNFTablesLeavesNothingHanging(t *testing.T) {
	for _, c := range []Config{everyNFT(), manyKinds(300)} {
		table := NFTables(c)
		if err := table.Check(); err != nil {
			t.Fatal(err)
		}
		if lost := ruletest.UnreachableNFT(table); len(lost) > 0 {
			t.Errorf("nothing leads to %q", lost)
		}
		seen := map[string]bool{}
		for _, chain := range table.Chains() {
			if seen[chain.Name] {
				t.Errorf("chain %s is there twice", chain.Name)
			}
			seen[chain.Name] = true
		}
	}
}

// manyKinds is a configuration of n services that alternate between all kinds.
func manyKinds(n int) Config {
	c := everyNFT()
	base := c.Services
	c.Services = nil
	for i := range n {
		s := base[i%len(base)]
		s.Name = fmt.Sprintf("%s-%d", s.Name, i)
		s.VIP = netip.AddrFrom4([4]byte{10, 43, byte(1 + i>>8), byte(i)})
		if s.NodePort != 0 {
			s.NodePort = uint16(30000 + i)
		}
		for k := range s.LoadBalancerIPs {
			s.LoadBalancerIPs = slices.Clone(s.LoadBalancerIPs)
			s.LoadBalancerIPs[k] = netip.AddrFrom4([4]byte{198, 51, byte(100 + i>>8), byte(i)})
		}
		c.Services = append(c.Services, s)
	}
	return c
}

var choice = regexp.MustCompile(`numgen random mod (\d+) (?:map|vmap) \{ (.*) \}`)

// TestNFTablesSharesEvenly: a choice among n has n different outcomes, numbered from 0, each once: then a random number
// below n gives each the same share.
func TestNFTablesSharesEvenly(t *testing.T) {
	for n := 1; n <= 20; n++ {
		for _, sticky := range []bool{false, true} {
			s := Service{Namespace: "a", Name: "b", Protocol: "udp", VIP: addr("10.43.0.1"), Port: 53, SessionAffinity: sticky}
			for i := range n {
				s.Endpoints = append(s.Endpoints, Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 42, 0, byte(i + 1)}), 53)})
			}
			text := NFTables(Config{Services: []Service{s}}).String()
			found := choice.FindAllStringSubmatch(text, -1)
			if len(found) != 1 || found[0][1] != fmt.Sprint(n) {
				t.Fatalf("%d endpoints, affinity %v: choices %q", n, sticky, found)
			}
			outcomes := map[string]bool{}
			for i, part := range strings.Split(found[0][2], ", ") {
				number, outcome, _ := strings.Cut(part, " : ")
				if number != fmt.Sprint(i) {
					t.Errorf("outcome %d has number %s", i, number)
				}
				outcomes[outcome] = true
			}
			if len(outcomes) != n {
				t.Errorf("%d endpoints, affinity %v: %d outcomes", n, sticky, len(outcomes))
			}
		}
	}
}

// TestNFTablesDoesNotGrowWithServices: what a new connection walks through is the same for one service and for a
// thousand.
func TestNFTablesDoesNotGrowWithServices(t *testing.T) {
	rules := func(c Config) (n int) {
		for _, chain := range NFTables(c).Chains() {
			if chain.Hook != nil || slices.Contains([]string{nftServices, nftMasquerading, nftServiceCheck, nftNodePortCheck, nftClusterCheck}, chain.Name) {
				n += len(chain.Rules)
			}
		}
		return n
	}
	if one, thousand := rules(manyKinds(1)), rules(manyKinds(1000)); one != thousand {
		t.Errorf("%d rules with one service, %d with a thousand", one, thousand)
	}
}

// TestNFTablesNamesFit: the longest names that Kubernetes allows make names that the kernel takes.
func TestNFTablesNamesFit(t *testing.T) {
	long := strings.Repeat("x", 63)
	s := Service{
		Namespace: long, Name: long, PortName: strings.Repeat("p", 15), Protocol: "sctp", VIP: addr("10.43.0.1"), Port: 1, SessionAffinity: true,
		Endpoints: endpoints(true, "255.255.255.255:65535"),
	}
	c := everyNFT()
	c.Services = []Service{s}
	table := NFTables(c)
	if err := table.Check(); err != nil {
		t.Error(err)
	}
	for _, c := range table.Chains() {
		if len(c.Name) > nft.MaxName {
			t.Errorf("%s is too long", c.Name)
		}
	}
}

// FuzzNFTables: Services of any shape make a table that passes Check.
func FuzzNFTables(f *testing.F) {
	f.Add(uint16(80), uint16(30080), uint8(3), uint8(0))
	f.Add(uint16(1), uint16(0), uint8(0), uint8(7))
	f.Fuzz(func(t *testing.T, port, nodePort uint16, n, flags uint8) {
		port = max(port, 1)
		s := Service{Namespace: "ns", Name: "web", PortName: "http", Protocol: "tcp", VIP: addr("10.43.0.1"), Port: port, NodePort: nodePort}
		s.SessionAffinity, s.ExternalTrafficPolicyLocal = flags&1 != 0, flags&2 != 0
		for i := range n {
			s.Endpoints = append(s.Endpoints, Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 42, 1, i}), port), Local: i%2 == 0 && flags&4 == 0})
		}
		c := everyNFT()
		c.Services = []Service{s}
		table := NFTables(c)
		if err := table.Check(); err != nil {
			t.Error(err)
		}
		// The chain that rejects is always there, and led to while a service has no endpoints.
		for _, lost := range ruletest.UnreachableNFT(table) {
			if lost != nftReject || n == 0 {
				t.Errorf("nothing leads to %q", lost)
			}
		}
	})
}
