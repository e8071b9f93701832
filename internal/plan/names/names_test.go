package names

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestNames holds names against ndots and search lists, as resolv.conf(5) says.
func TestNames(t *testing.T) {
	for _, x := range []struct {
		name   string
		ndots  int
		search string
		want   string
	}{
		{"www.example.com", 1, "a.b c", "*www.example.com. www.example.com.a.b. www.example.com.c."},
		{"www.example.com", 5, "a.b c", "www.example.com.a.b. www.example.com.c. *www.example.com."},
		{"www.example.com", 2, "c", "*www.example.com. www.example.com.c."},
		{"www.example.com", 3, "c", "www.example.com.c. *www.example.com."},
		{"www.example.com.", 5, "a.b c", "*www.example.com."},
		{"db", 1, "a.b c.", "db.a.b. db.c. *db."},
		{"db", 0, "c", "*db. db.c."},
		{"db", 5, "", "*db."},
		{"db", 1, strings.Repeat("a.", 126) + "a c", "db.c. *db."}, // too long with the first domain
	} {
		got, itself := Config{Ndots: x.ndots, Search: strings.Fields(x.search)}.Names(x.name)
		got[itself] = "*" + got[itself]
		if all := strings.Join(got, " "); all != x.want {
			t.Errorf("%s, ndots %d, search %s: %s, want %s", x.name, x.ndots, x.search, all, x.want)
		}
	}
}

func TestParse(t *testing.T) {
	got := parseResolvConf("# by the kubelet\nsearch default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\nnameserver fd00::a\n" +
		"nameserver x\nnameserver 1.1.1.1\nnameserver 2.2.2.2\noptions ndots:5 timeout:2 attempts:9 rotate edns0\nnonsense\n")
	want := Config{Servers: []netip.AddrPort{netip.MustParseAddrPort("10.96.0.10:53"), netip.MustParseAddrPort("[fd00::a]:53"), netip.MustParseAddrPort("1.1.1.1:53")},
		Search: inKubernetes, Ndots: 5, Timeout: 2 * time.Second, Attempts: 5}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); d != "" {
		t.Error(d)
	}
	if got := parseResolvConf("options ndots:99 ndots:x timeout:0"); got.Ndots != 15 || got.Timeout != time.Second || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}
}

// TestConfig: what a workload gives is before what resolv.conf says.
func TestConfig(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:5000")
	const text = "nameserver 10.96.0.10\nsearch here\noptions ndots:5"
	for _, x := range []struct {
		shape  Shape
		server string
		ndots  int
		search string
	}{
		{Shape{}, "10.0.0.1:5000", 1, "default.svc.cluster.local"},
		{Shape{Ndots: 5}, "10.0.0.1:5000", 5, "default.svc.cluster.local"},
		{Shape{Server: Cluster}, "10.96.0.10:53", 5, "here"},
		{Shape{Server: Cluster, Ndots: 2}, "10.96.0.10:53", 2, "here"},
		{Shape{Server: "fd00::a"}, "[fd00::a]:53", 1, "default.svc.cluster.local"},
	} {
		c := x.shape.WithDefaults().Config(at, text)
		if c.Servers[0].String() != x.server || c.Ndots != x.ndots || c.Search[0] != x.search || c.Timeout != 5*time.Second || c.Attempts != 2 {
			t.Errorf("%+v: %+v", x.shape, c)
		}
	}
}

func TestBadName(t *testing.T) {
	for name, ok := range map[string]bool{
		"www.example.com": true, "a": true, "a.": true, "_x._udp.a-b.c": true, "": false, ".": false, "a..b": false, "a b": false, "ä.de": false,
		strings.Repeat("a", 63) + ".b": true, strings.Repeat("a", 64) + ".b": false, strings.Repeat("a.", 126) + "a": true, strings.Repeat("a.", 127) + "a": false,
	} {
		if why := BadName(name); (why == "") != ok {
			t.Errorf("%q: %q", name, why)
		}
	}
}
