package service

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func endpoints(local bool, addrs ...string) []Endpoint {
	var out []Endpoint
	for _, a := range addrs {
		out = append(out, Endpoint{Addr: netip.MustParseAddrPort(a), Local: local})
	}
	return out
}

// every is a configuration with each kind of service once.
func every() Config {
	ns := func(name string, n int) Service {
		return Service{Namespace: "bench", Name: name, PortName: "http", Protocol: "tcp", VIP: addr(fmt.Sprintf("10.43.0.%d", n)), Port: 80}
	}
	cluster, local, closed := ns("cluster", 10), ns("local", 11), ns("closed", 12)
	cluster.NodePort, cluster.Endpoints = 30080, endpoints(false, "10.42.0.2:8080", "10.42.1.2:8080", "10.42.1.3:8080")
	local.NodePort, local.ExternalTrafficPolicyLocal = 30081, true
	local.Endpoints = append(endpoints(true, "10.42.0.2:8080"), endpoints(false, "10.42.1.2:8080")...)
	closed.NodePort = 30082
	far := ns("far", 13)
	far.NodePort, far.ExternalTrafficPolicyLocal, far.Endpoints = 30083, true, endpoints(false, "10.42.1.2:8080")
	sticky := ns("sticky", 14)
	sticky.SessionAffinity, sticky.Endpoints = true, endpoints(true, "10.42.0.2:8080", "10.42.0.3:8080")
	udp := Service{Namespace: "kube-system", Name: "dns", Protocol: "udp", VIP: addr("10.43.0.15"), Port: 53, Endpoints: endpoints(true, "10.42.0.4:53")}
	balanced := ns("balanced", 16)
	balanced.LoadBalancerIPs, balanced.Endpoints = []netip.Addr{addr("198.51.100.1")}, endpoints(true, "10.42.0.2:8080")
	return Config{
		ClusterCIDR: netip.MustParsePrefix("10.42.0.0/16"),
		Services:    []Service{cluster, local, closed, far, sticky, udp, balanced},
	}
}

func render(c Config) *ruleset.Ruleset {
	r := ruleset.New()
	AddKubelet(r, c.IPv6)
	Add(r, c)
	return r
}

// iptablesText is the whole input for iptables-restore.
func iptablesText(c Config) string { return render(c).String() }

func TestEveryKindOfService(t *testing.T) {
	c := every()
	golden.Check(t, "every.rules", []byte(render(c).String()))
	c.NoLocalhostNodePorts = true
	golden.Check(t, "every-nolocalhost.rules", []byte(render(c).String()))
	golden.Check(t, "none.rules", []byte(iptablesText(Config{ClusterCIDR: c.ClusterCIDR})))
}

// TestNoClusterCIDR: a kube-proxy that does not know the pods masquerades for hairpins and node ports alone.
func TestNoClusterCIDR(t *testing.T) {
	c, n := every(), everyNFT()
	c.ClusterCIDR, n.ClusterCIDR = netip.Prefix{}, netip.Prefix{}
	for _, text := range []string{iptablesText(c), NFTables(n).String()} {
		if strings.Contains(text, "invalid Prefix") || strings.Contains(text, "10.42.0.0/16") || strings.Contains(text, "pod traffic") {
			t.Errorf("the rules speak of a range of pods:\n%s", text)
		}
	}
}

// TestChainNames compares with names that kube-proxy itself gives; they are in the tests of its repository.
func TestChainNames(t *testing.T) {
	s := Service{Namespace: "ns1", Name: "svc1", PortName: "p80", Protocol: "tcp"}
	e := Endpoint{Addr: netip.MustParseAddrPort("10.180.0.1:80")}
	for got, want := range map[string]string{
		s.ServiceChain():   "KUBE-SVC-XPGD46QRK7WJZT7O",
		s.ExternalChain():  "KUBE-EXT-XPGD46QRK7WJZT7O",
		s.EndpointChain(e): "KUBE-SEP-SXIVWICOYRO3J4NJ",
		Service{Namespace: "ns2", Name: "svc2", PortName: "p80", Protocol: "tcp"}.LocalChain(): "KUBE-SVL-GNZBNJ2PO5MGZ6GT",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// neverJumpedTo are the chains that stand alone on a node as well; AddKubelet says why.
var neverJumpedTo = regexp.MustCompile(`/KUBE-(PROXY-CANARY|KUBELET-CANARY|IPTABLES-HINT)$`)

func TestRulesAreWhole(t *testing.T) {
	for name, c := range map[string]Config{"every": every(), "none": {ClusterCIDR: every().ClusterCIDR}} {
		r := render(c)
		if err := ruletest.Check(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, chain := range ruletest.Unreachable(r) {
			// Without services nobody asks for the mark; kube-proxy makes the chain all the same.
			unasked := len(c.Services) == 0 && chain == "nat/"+chainMarkMasq
			if !neverJumpedTo.MatchString(chain) && !unasked {
				t.Errorf("%s: no way leads to %s", name, chain)
			}
		}
		if again := render(c).String(); again != r.String() {
			t.Errorf("%s: two renderings differ", name)
		}
	}
}

var (
	probability = regexp.MustCompile(`--probability (\S+) .*-j (KUBE-SEP-\w+)`)
	certain     = regexp.MustCompile(`-j (KUBE-SEP-\w+)$`)
)

// shares computes with which probability each endpoint chain is taken by a new connection in chain.
func shares(t *testing.T, rules []string) map[string]float64 {
	t.Helper()
	left, out := 1.0, map[string]float64{}
	for _, rule := range rules {
		if strings.Contains(rule, "--rcheck") {
			continue
		}
		if m := probability.FindStringSubmatch(rule); m != nil {
			p, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			out[m[2]] += left * p
			left *= 1 - p
		} else if m := certain.FindStringSubmatch(rule); m != nil {
			out[m[1]] += left
			left = 0
		}
	}
	if left != 0 {
		t.Errorf("with probability %g no endpoint is taken", left)
	}
	return out
}

func TestSharesAreEven(t *testing.T) {
	for n := 1; n <= 1100; n = n*2 + 1 {
		for _, sticky := range []bool{false, true} {
			s := Service{Namespace: "a", Name: "b", Protocol: "tcp", VIP: addr("10.43.0.1"), Port: 80, SessionAffinity: sticky}
			for i := range n {
				s.Endpoints = append(s.Endpoints, Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 42, byte(i >> 8), byte(i)}), 80)})
			}
			r := render(Config{Services: []Service{s}})
			got := shares(t, r.Table(ruleset.NAT).Chain(s.ServiceChain()).Rules())
			if len(got) != n {
				t.Errorf("%d endpoints: %d are ever taken", n, len(got))
			}
			for chain, p := range got {
				if math.Abs(p*float64(n)-1) > 1e-6 {
					t.Errorf("%d endpoints: %s is taken with probability %.10f, want %.10f", n, chain, p, 1/float64(n))
				}
			}
		}
	}
}

// TestNodePortsComeLast holds the order that makes a node port the dearest way to a service.
func TestNodePortsComeLast(t *testing.T) {
	rules := render(every()).Table(ruleset.NAT).Chain(chainServices).Rules()
	for i, rule := range rules {
		if (ruletest.Target(rule) == chainNodePorts) != (i == len(rules)-1) {
			t.Errorf("rule %d of %d of %s is %q", i+1, len(rules), chainServices, rule)
		}
	}
}

func TestLocalPolicyKeepsToItsNode(t *testing.T) {
	c := every()
	nat := render(c).Table(ruleset.NAT)
	local := c.Services[1]
	got := shares(t, nat.Chain(local.LocalChain()).Rules())
	if len(got) != 1 || got[local.EndpointChain(local.Endpoints[0])] != 1 {
		t.Errorf("%s shares among %v, want the local endpoint alone", local.LocalChain(), got)
	}
	far := c.Services[3]
	for _, rule := range nat.Chain(far.ExternalChain()).Rules() {
		if ruletest.Target(rule) == far.LocalChain() {
			t.Errorf("a service without local endpoints leads to them: %q", rule)
		}
	}
}

func TestSysctls(t *testing.T) {
	if got := Sysctls(Config{})["net/ipv4/conf/all/route_localnet"]; got != "1" {
		t.Errorf("route_localnet %q with node ports on localhost", got)
	}
	if got, ok := Sysctls(Config{NoLocalhostNodePorts: true})["net/ipv4/conf/all/route_localnet"]; ok {
		t.Errorf("route_localnet %q without node ports on localhost", got)
	}
}

// many is n services with k endpoints each.
func many(n, k int) Config {
	c := Config{ClusterCIDR: netip.MustParsePrefix("10.42.0.0/16")}
	for i := range n {
		s := Service{Namespace: "scale", Name: "s" + strconv.Itoa(i), PortName: "http", Protocol: "tcp",
			VIP: netip.AddrFrom4([4]byte{10, 43, byte(i >> 8), byte(i)}), Port: 80}
		for j := range k {
			a := i*k + j
			s.Endpoints = append(s.Endpoints, Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 42, byte(a >> 8), byte(a)}), uint16(1024+a>>16))})
		}
		c.Services = append(c.Services, s)
	}
	return c
}

func TestTenThousandServices(t *testing.T) {
	const n, k = 10000, 5
	c := many(n, k)
	start := time.Now()
	text := render(c).String()
	t.Logf("%d services with %d endpoints: %d bytes in %v", n, k, len(text), time.Since(start).Round(time.Millisecond))
	if got := strings.Count(text, "-j DNAT"); got != n*k {
		t.Errorf("%d DNAT rules, want %d", got, n*k)
	}
	if strings.Contains(text, "scale/s7:http ->") {
		t.Error("above 1,000 endpoints their rules still bear comments")
	}
	if got := strings.Count(text, "\n:KUBE-SVC-"); got != n {
		t.Errorf("%d service chains, want %d", got, n)
	}
}

func BenchmarkIptables(b *testing.B) {
	c := many(10000, 5)
	for b.Loop() {
		_ = render(c).String()
	}
}
