package main

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answering serves names by UDP, so late, and returns them and where.
func answering(t *testing.T, late time.Duration, args ...string) (names, string) {
	t.Helper()
	known, err := parseNames(args)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go func() { _ = known.serveUDP(udp, late) }()
	return known, udp.LocalAddr().String()
}

// asking returns Go's own resolver, which asks at one place.
func asking(network, at string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	}}
}

// TestResolver asks by Go's own resolver, over UDP and TCP.
func TestResolver(t *testing.T) {
	known, udp := answering(t, 0, "a.svc.cluster.local=10.96.0.1", "six.svc.cluster.local.=fd00::1")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go func() { _ = known.serveTCP(tcp) }()
	for network, at := range map[string]string{"udp": udp, "tcp": tcp.Addr().String()} {
		r := asking(network, at)
		for name, want := range map[string]string{"A.svc.cluster.local.": "10.96.0.1", "six.svc.cluster.local.": "fd00::1", "b.svc.cluster.local.": ""} {
			got, err := r.LookupNetIP(t.Context(), "ip", name)
			dns, _ := err.(*net.DNSError)
			if want == "" && (dns == nil || !dns.IsNotFound) || want != "" && !slices.Equal(got, []netip.Addr{netip.MustParseAddr(want)}) {
				t.Errorf("%s by %s: %v, %v", name, network, got, err)
			}
		}
	}
}

// TestLate: a slow resolver answers after its delay, and not before.
func TestLate(t *testing.T) {
	const late = 50 * time.Millisecond
	_, udp := answering(t, late, "a=10.96.0.1")
	r := asking("udp", udp)
	began := time.Now()
	if got, err := r.LookupNetIP(t.Context(), "ip4", "a."); err != nil || len(got) != 1 || time.Since(began) < late {
		t.Errorf("%v, %v in %v", got, err, time.Since(began))
	}
	if run([]string{"5353", "late=soon", "a=10.96.0.1"}) == nil {
		t.Error("a delay that is none is taken")
	}
}

func TestBadNames(t *testing.T) {
	for _, bad := range []string{"", "a", "=10.0.0.1", "a=b"} {
		if _, err := parseNames([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if run([]string{"5353"}) == nil {
		t.Error("a resolver of nothing runs")
	}
}

// FuzzAnswer: whatever comes, what is answered is a response with the query's number.
func FuzzAnswer(f *testing.F) {
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("a.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	text, err := query.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, query []byte) {
		reply, err := names{"a.local.": netip.MustParseAddr("10.0.0.1")}.answer(query)
		if err != nil {
			return
		}
		var p dnsmessage.Parser
		if head, err := p.Start(reply); err != nil || !head.Response || head.ID != uint16(query[0])<<8|uint16(query[1]) {
			t.Errorf("%x: %v, %+v", query, err, head)
		}
	})
}

// TestParse: the delay stands between port and names, and may be left out.
func TestParse(t *testing.T) {
	for _, args := range []string{"5353 a=10.0.0.1", "5353 late=90ms a=10.0.0.1"} {
		want := 90 * time.Millisecond
		if !strings.Contains(args, "late") {
			want = 0
		}
		port, late, known, err := parse(strings.Fields(args))
		if port != "5353" || late != want || known["a."].String() != "10.0.0.1" || err != nil {
			t.Errorf("%s: port %s, late %s, %v, %v", args, port, late, known, err)
		}
	}
	for _, args := range []string{"", "5353", "5353 late=soon a=10.0.0.1", "5353 a"} {
		if _, _, _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
