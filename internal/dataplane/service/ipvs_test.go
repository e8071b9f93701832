package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// served is every without what ipvs mode does not serve.
func served() Config {
	c := every()
	c.NoLocalhostNodePorts = true
	c.Services = slices.DeleteFunc(c.Services, func(s Service) bool { return len(s.LoadBalancerIPs) > 0 })
	return c
}

func renderIPVS(t *testing.T, c Config) (rules, sets string) {
	t.Helper()
	r := ruleset.New()
	AddKubelet(r, c.IPv6)
	sets = AddIPVS(r, c)
	return r.String(), sets
}

func TestIPVSRulesAndSets(t *testing.T) {
	v6 := Config{IPv6: true, ClusterCIDR: netip.MustParsePrefix("fd00:10:244::/56"), Services: []Service{{
		Namespace: "bench", Name: "web", PortName: "http", Protocol: "tcp", VIP: addr("fd00:10:96::1"), Port: 80, NodePort: 30080,
		Endpoints: endpoints(true, "[fd00:10:244::2]:8080"),
	}}}
	nobody := served()
	nobody.Services = nil
	for name, c := range map[string]Config{"ipvs": served(), "ipvs-none": nobody, "ipvs-v6": v6} {
		rules, sets := renderIPVS(t, c)
		golden.Check(t, name+".rules", []byte(rules))
		golden.Check(t, name+".sets", []byte(sets))
	}
}

// TestIPVSRulesNameTheirSets: iptables refuses a rule that names a set which is not there.
func TestIPVSRulesNameTheirSets(t *testing.T) {
	rules, sets := renderIPVS(t, served())
	for _, m := range regexp.MustCompile(`--match-set (\S+)`).FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(sets, "create "+m[1]+" ") {
			t.Errorf("no set %s", m[1])
		}
	}
}

// TestIPVSRulesDoNotGrow: a thousand Services have the rules of one.
func TestIPVSRulesDoNotGrow(t *testing.T) {
	c := served()
	few, _ := renderIPVS(t, c)
	for i := range 1000 {
		s := c.Services[0]
		s.Name, s.VIP, s.NodePort = fmt.Sprintf("more-%d", i), netip.AddrFrom4([4]byte{10, 44, byte(i >> 8), byte(i)}), 0
		c.Services = append(c.Services, s)
	}
	if many, _ := renderIPVS(t, c); many != few {
		t.Errorf("%d lines have become %d", strings.Count(few, "\n"), strings.Count(many, "\n"))
	}
}

func TestIPVSServers(t *testing.T) {
	node := []netip.Addr{addr("192.0.2.1"), addr("10.42.0.1")}
	got := map[string]ipvs.Server{}
	for _, s := range IPVSServers(served(), node) {
		got[s.String()] = s
	}
	for name, want := range map[string]struct {
		backends string
		affinity string
	}{
		"tcp 10.43.0.10:80":   {"[10.42.0.2:8080 10.42.1.2:8080 10.42.1.3:8080]", "0s"},
		"tcp 192.0.2.1:30080": {"[10.42.0.2:8080 10.42.1.2:8080 10.42.1.3:8080]", "0s"},
		"tcp 10.42.0.1:30080": {"[10.42.0.2:8080 10.42.1.2:8080 10.42.1.3:8080]", "0s"},
		"tcp 10.43.0.11:80":   {"[10.42.0.2:8080 10.42.1.2:8080]", "0s"},
		"tcp 192.0.2.1:30081": {"[10.42.0.2:8080]", "0s"}, // of this node alone
		"tcp 192.0.2.1:30083": {"[]", "0s"},               // which has none
		"tcp 10.43.0.12:80":   {"[]", "0s"},
		"tcp 10.43.0.14:80":   {"[10.42.0.2:8080 10.42.0.3:8080]", "3h0m0s"},
		"udp 10.43.0.15:53":   {"[10.42.0.4:53]", "0s"},
		"tcp 10.42.0.1:30083": {"[]", "0s"},
		"tcp 10.42.0.1:30081": {"[10.42.0.2:8080]", "0s"},
		"tcp 10.43.0.13:80":   {"[10.42.1.2:8080]", "0s"},
		"tcp 192.0.2.1:30082": {"[]", "0s"},
		"tcp 10.42.0.1:30082": {"[]", "0s"},
	} {
		s, ok := got[name]
		if !ok || fmt.Sprint(s.Backends) != want.backends || s.Affinity.String() != want.affinity {
			t.Errorf("%s: %+v (there: %v), want %+v", name, s, ok, want)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is nobody's", name)
	}
	if got := len(IPVSAddresses(served())); got != len(served().Services) {
		t.Errorf("%d addresses for %d Services", got, len(served().Services))
	}
}
