package plan

import (
	"strings"
	"testing"
	"time"
)

func TestParseDNS(t *testing.T) {
	for in, want := range map[string]string{
		"dns": "dns",
		"dns(udp,queries=both,ndots=1,timeout=5s,attempts=2,server=own,name=www.example.com)": "dns",
		"dns(tcp)":                            "dns(tcp)",
		"dns(ndots=5,queries=a)":              "dns(queries=a,ndots=5)",
		"dns(rate=1K,flows=4)":                "dns(flows=4,rate=1K)",
		"dns(server=cluster)":                 "dns(server=cluster)",
		"dns(server=fd00::a,name=a.b)":        "dns(server=fd00::a,name=a.b)",
		"dns(timeout=500ms,attempts=1)":       "dns(timeout=500ms,attempts=1)",
		"dns(backends=2,window=10s,load=50%)": "dns(load=50%,backends=2,window=10s)",
	} {
		readsAs(t, in, want)
	}
	is := parsed(t, "dns(timeout=1s,attempts=3)").Traits()
	if !is.Exchanges() || is.Standing() || is.Kernel() || is.Timeout != 5*time.Second || !is.Names.Pair() {
		t.Errorf("%+v", is)
	}
	if is := parsed(t, "dns(server=cluster)").Traits(); !is.Kernel() || is.Names.Ndots != 0 || is.Names.Name == "" {
		t.Errorf("%+v", is)
	}
}

// TestDNSFaultsAreListedAtOnce: each option that is wrong is named, those out of bounds and those that do not go together.
func TestDNSFaultsAreListedAtOnce(t *testing.T) {
	_, err := ParseWorkload("dns(icmp,queries=mx,ndots=16,timeout=1ms,attempts=6,server=nowhere,name=a..b,flows=0,color=red)")
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{
		"dns runs over udp or tcp, not icmp", `"mx" is not one of both, a, race`, "ndots: 16 is out of range: want 1 to 15", "timeout: 1ms is out of range",
		"attempts: 6 is out of range", `"nowhere" is neither own, cluster nor an address`, `"a..b" is not a name`, "flows: 0 is out of range", `unknown option "color"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	_, err = ParseWorkload("dns(server=cluster,backends=2,load=50%)")
	if err == nil || !strings.Contains(err.Error(), "backends are servers of ours") || !strings.Contains(err.Error(), "give a rate") {
		t.Error(err)
	}
	if _, err := ParseWorkload("dns(tcp,queries=race)"); err == nil || !strings.Contains(err.Error(), "queries race is for udp") {
		t.Error(err)
	}
	if _, err := ParseWorkload("dns(server=cluster,arrival=saturate)"); err == nil || !strings.Contains(err.Error(), "arrival saturate") {
		t.Error(err)
	}
}

// TestDNSElsewhere: the resolver of a cluster is asked behind a Service, from a pod, on a cluster.
func TestDNSElsewhere(t *testing.T) {
	w := parsed(t, "dns(server=cluster)")
	for _, p := range Paths {
		if open := w.Barred(p) == ""; open != (p.From == Pod && p.To == Service) {
			t.Errorf("%s: %q", p, w.Barred(p))
		}
	}
	if why := parsed(t, "dns").Barred(ZeroPath); why != "" {
		t.Error(why)
	}
	p := Default()
	p.Paths, p.Workloads = []Path{{Pod, Service, Remote}}, []Workload{w}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "a lab has servers of ours alone") {
		t.Error(err)
	}
	for _, c := range p.Cases() {
		if c.Path == ZeroPath {
			t.Errorf("%v asks a server of the cluster from host to host", c)
		}
	}
	if got := (Plan{Workloads: []Workload{parsed(t, "dns(backends=2)")}}).Backends(); len(got) != 1 || got[0] != 2 {
		t.Error(got)
	}
}
