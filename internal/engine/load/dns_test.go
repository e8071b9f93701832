package load

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/lookup"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

func dnsOf(t *testing.T, text string) plan.Workload {
	t.Helper()
	w, err := plan.ParseWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestNames: each resolution has an address, and takes as many queries as its name and search list ask for.
func TestNames(t *testing.T) {
	for text, queries := range map[string]uint64{
		"dns": 2, "dns(queries=a)": 1, "dns(ndots=5)": 8, "dns(ndots=5,queries=a)": 4, "dns(flows=3)": 2, "dns(queries=race)": 2, "dns(rate=500)": 2, "dns(arrival=saturate,flows=2)": 2,
		"dns(tcp)": 2, "dns(tcp,ndots=5)": 8, "dns(tcp,rate=300,flows=2)": 2, "dns(tcp,flows=2,arrival=saturate)": 2,
	} {
		t.Run(text, func(t *testing.T) {
			o := options(dnsOf(t, text))
			o.Window, o.CPUs = 300*time.Millisecond, nil
			client, server := trial(t, o)
			n := client.Names
			if n == nil || client.Operations == 0 || failures(client) > 0 || failures(server) > 0 {
				t.Fatalf("%d resolutions, account %+v, errors %v %v", client.Operations, n, client.Errors, server.Errors)
			}
			// Those under way at the end are finished, and count.
			if most := client.Operations + uint64(o.Workload.Traits().Concurrency()); n.Queries < queries*client.Operations || n.Queries > queries*most || n.Waited > 0 || n.Cut > 0 {
				t.Errorf("%+v for %d resolutions", n, client.Operations)
			}
			if client.RTT.Count() == 0 || client.BytesSent == 0 || client.BytesReceived == 0 || server.Operations == 0 {
				t.Errorf("%d times, %d and %d bytes, %d answers", client.RTT.Count(), client.BytesSent, client.BytesReceived, server.Operations)
			}
		})
	}
}

// answering is a server of a test, over UDP and TCP on one port. treat says what becomes of an answer over UDP: nil is lost.
type answering struct {
	port  int
	treat func(answer []byte, kind dnsmessage.Type) []byte
}

func listenNames(t *testing.T, treat func([]byte, dnsmessage.Type) []byte) *answering {
	t.Helper()
	return listenNamesAt(t, 0, treat)
}

func listenNamesAt(t *testing.T, port int, treat func([]byte, dnsmessage.Type) []byte) *answering {
	t.Helper()
	needNamespace(t)
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	a := &answering{port: c.LocalAddr().(*net.UDPAddr).Port, treat: treat}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: a.port})
	if err != nil {
		t.Fatal(err)
	}
	s, err := lookup.NewServer("www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close() })
	go a.datagrams(c, s)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go stream(conn, s)
		}
	}()
	return a
}

func (a *answering) datagrams(c *net.UDPConn, s *lookup.Server) {
	b := make([]byte, 1500)
	for {
		n, from, err := c.ReadFromUDP(b)
		if err != nil {
			return
		}
		answer := s.Answer(b[:n], nil)
		var p dnsmessage.Parser
		if _, err := p.Start(answer); err != nil {
			continue
		}
		q, err := p.Question()
		if err != nil {
			continue
		}
		if answer = a.treat(answer, q.Type); answer != nil {
			_, _ = c.WriteToUDP(answer, from)
		}
	}
}

func stream(c net.Conn, s *lookup.Server) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		a := s.Answer(q, nil)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

// ask runs the client of dns against a server of the test.
func ask(t *testing.T, text string, a *answering) (*sample.Observation, error) {
	t.Helper()
	o := options(dnsOf(t, text))
	o.Port = a.port
	r := wait(t, start(t.Context(), prepare(t, control.SideClient, o)), 1)[0]
	return r.o, r.err
}

func pass(answer []byte, _ dnsmessage.Type) []byte { return answer }

// TestLostAnswers: a lost AAAA is one timeout of a resolution, whose time has it, although the window is shorter than that.
func TestLostAnswers(t *testing.T) {
	n := 0
	a := listenNames(t, func(answer []byte, kind dnsmessage.Type) []byte {
		if n++; kind == dnsmessage.TypeAAAA && n%40 == 20 {
			return nil
		}
		return answer
	})
	o, err := ask(t, "dns(timeout=400ms)", a)
	if err != nil {
		t.Fatal(err)
	}
	if longest := time.Duration(o.RTT.Max()); o.Names.Waited == 0 || failures(o) > 0 || longest < 400*time.Millisecond || longest > 800*time.Millisecond {
		t.Errorf("%+v, errors %v, the longest took %v", o.Names, o.Errors, longest)
	}
	if elapsed := time.Duration(o.ElapsedNs); elapsed > 300*time.Millisecond {
		t.Errorf("the window of 150ms took %v", elapsed)
	}
}

// TestBadAnswers: what is not an answer is waited past; failures have a name of their own.
func TestBadAnswers(t *testing.T) {
	never := func([]byte, dnsmessage.Type) []byte { return nil }
	code := func(c dnsmessage.RCode) func([]byte, dnsmessage.Type) []byte {
		return func(a []byte, _ dnsmessage.Type) []byte { a[3], a[7] = a[3]&0xf0|byte(c), 0; return a }
	}
	for about, x := range map[string]struct {
		treat func([]byte, dnsmessage.Type) []byte
		kind  string
	}{
		"silent":       {never, "timeout"},
		"wrong id":     {func(a []byte, _ dnsmessage.Type) []byte { a[0] ^= 0x55; return a }, "timeout"},
		"malformed":    {func(a []byte, _ dnsmessage.Type) []byte { return a[:14] }, "timeout"},
		"server fails": {code(dnsmessage.RCodeServerFailure), "name server failed"},
		"no such name": {code(dnsmessage.RCodeNameError), "no such name"},
	} {
		t.Run(about, func(t *testing.T) {
			_, err := ask(t, "dns(timeout=30ms)", listenNames(t, x.treat))
			if err == nil || kindOf(err) != x.kind || !strings.Contains(err.Error(), "no name was resolved") {
				t.Errorf("%v, want kind %q", err, x.kind)
			}
		})
	}
	t.Run("cut off", func(t *testing.T) {
		for _, text := range []string{"dns", "dns(rate=200)"} {
			o, err := ask(t, text, listenNames(t, func(a []byte, _ dnsmessage.Type) []byte { a[2] |= 2; return a }))
			if err != nil || o.Names.Cut == 0 || o.Names.Cut < o.Operations || failures(o) > 0 {
				t.Errorf("%s: %+v, %v", text, o, err)
			}
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		a := listenNames(t, pass)
		a.port++
		if _, err := ask(t, "dns", a); err == nil || kindOf(err) != "connection refused" {
			t.Error(err)
		}
	})
}

// TestServerElsewhere: a server that is not ours is asked at its own address, and the other side of the trial has nothing to
// do.
func TestServerElsewhere(t *testing.T) {
	listenNamesAt(t, 53, pass)
	o := options(dnsOf(t, "dns(server=127.0.0.1,ndots=5,rate=300)"))
	client, server := trial(t, o)
	if client.Operations == 0 || client.Names.Queries != 8*client.Operations || failures(client) > 0 || server.Operations != 0 || failures(server) > 0 {
		t.Errorf("%d resolutions, %+v, errors %v; the other side: %d, %v", client.Operations, client.Names, client.Errors, server.Operations, server.Errors)
	}
}

// TestClusterResolver: the servers are those of resolv.conf; the test has that of the machine, which may name none.
func TestClusterResolver(t *testing.T) {
	needNamespace(t)
	text, err := os.ReadFile(resolvConf)
	if err == nil && strings.Contains(string(text), "nameserver") {
		o := options(dnsOf(t, "dns(server=cluster,name=x.,timeout=20ms,attempts=1)"))
		o.Side, o.Port = control.SideClient, 1
		c, err := Prepare(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	o := options(dnsOf(t, "dns(server=cluster)"))
	o.Side, o.Port = control.SideClient, 1
	if c, err := Prepare(t.Context(), o); err == nil {
		_ = c.Close()
		t.Error("no error without a name server")
	}
}
