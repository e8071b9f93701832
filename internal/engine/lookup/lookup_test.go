package lookup

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cnibench/cnibench/internal/plan/names"
)

// play is a resolution against a server that a test scripts: what becomes of each query, in the order in which they are sent.
type play struct {
	names *Names
	log   []string
	now   int64
	*Lookup
}

const seconds = int64(time.Second)

func resolve(t *testing.T, name string, c names.Config, pair, stream bool) *play {
	t.Helper()
	if len(c.Servers) == 0 {
		c.Servers = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:53")}
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Attempts == 0 {
		c.Attempts = 2
	}
	n, err := New(name, c, pair, stream)
	if err != nil {
		t.Fatal(err)
	}
	return &play{names: n, Lookup: &Lookup{}}
}

// fate is what becomes of a query: the answer to it, or "lost", or "later", as the last of those that were sent at once.
type fate = string

// run plays until there is a result. fates are those of the queries in order; those beyond the end are answered "found".
func (p *play) run(t *testing.T, fates ...fate) Result {
	t.Helper()
	do := p.Begin(p.names, p.now, 0x12345678)
	n := 0
	for range 100 {
		if do == Done {
			return p.Result
		}
		if do == Reopen {
			p.log = append(p.log, map[bool]string{false: "socket", true: "stream"}[p.Stream])
		}
		var sent [][]byte
		var buf [512]byte
		for m := p.Due(buf[:]); m != nil; m = p.Due(buf[:]) {
			if p.Stream {
				m = m[2:]
			}
			sent = append(sent, slices.Clone(m))
			p.log = append(p.log, asked(t, m))
		}
		do = Wait
		for _, m := range sent {
			what := "found"
			if n < len(fates) {
				what = fates[n]
			}
			n++
			if what != "lost" && do == Wait {
				do = p.Take(reply(t, m, what), p.now)
			}
		}
		if do == Wait {
			p.now = p.Deadline
			p.log = append(p.log, "timeout")
			do = p.Expire(p.now)
		}
	}
	t.Fatalf("it does not end: %s", strings.Join(p.log, " "))
	return 0
}

func asked(t *testing.T, m []byte) string {
	t.Helper()
	var p dnsmessage.Parser
	if _, err := p.Start(m); err != nil {
		t.Fatal(err)
	}
	q, err := p.Question()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(q.Type.String(), "Type") + "=" + q.Name.String()
}

// reply is an answer of a kind to a query.
func reply(t *testing.T, query []byte, kind string) []byte {
	t.Helper()
	s, err := NewServer("www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(s.Answer(query, nil)); err != nil {
		t.Fatal(err)
	}
	switch kind {
	case "servfail":
		m.RCode, m.Answers = dnsmessage.RCodeServerFailure, nil
	case "empty":
		m.Answers = nil
	case "nothing":
		m.RCode, m.Answers = dnsmessage.RCodeNameError, nil
	case "cut":
		m.Truncated = true
	case "other id":
		m.ID += 7
	case "other name":
		m.Questions[0].Name = dnsmessage.MustNewName("other.example.com.")
	case "other type":
		m.Questions[0].Type = dnsmessage.TypeTXT
	case "no answer":
		m.Response = false
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	switch kind {
	case "malformed":
		b = b[:20]
	case "torn":
		b = b[:len(b)-3]
	}
	return b
}

func TestResolutions(t *testing.T) {
	const (
		name = "www.example.com"
		pair = "A=www.example.com. AAAA=www.example.com."
	)
	search := names.Config{Ndots: 5, Search: []string{"svc.test", "test"}}
	for _, x := range []struct {
		about  string
		config names.Config
		fates  []fate
		want   string
		result Result
		after  int64 // seconds
	}{
		{"both at once", names.Config{}, nil, "socket " + pair, Found, 0},
		{"search list", search, nil, "socket A=www.example.com.svc.test. AAAA=www.example.com.svc.test. socket A=www.example.com.test. AAAA=www.example.com.test. socket " + pair, Found, 0},
		{"no address of one kind", names.Config{}, []fate{"found", "empty"}, "socket " + pair, Found, 0},
		{"no such name", names.Config{}, []fate{"nothing", "nothing"}, "socket " + pair, NoName, 0},
		{"a lost AAAA", names.Config{}, []fate{"found", "lost"}, "socket " + pair + " timeout A=www.example.com. AAAA=www.example.com.", Found, 5},
		{"a lost A", names.Config{}, []fate{"lost", "found"}, "socket " + pair + " timeout A=www.example.com. AAAA=www.example.com.", Found, 5},
		{"AAAA never comes", names.Config{}, []fate{"found", "lost", "found", "lost", "found", "lost"},
			"socket " + pair + " timeout " + pair + " timeout socket A=www.example.com. socket AAAA=www.example.com. timeout", Found, 15},
		{"both lost once", names.Config{}, []fate{"lost", "lost"}, "socket " + pair + " timeout socket " + pair, Found, 5},
		{"a silent server", names.Config{}, []fate{"lost", "lost", "lost", "lost"}, "socket " + pair + " timeout socket " + pair + " timeout", TimedOut, 10},
		{"a silent server, one attempt", names.Config{Attempts: 1, Timeout: time.Second}, []fate{"lost", "lost"}, "socket " + pair + " timeout", TimedOut, 1},
		{"a silent server and a search list", names.Config{Attempts: 1, Ndots: 5, Search: []string{"a", "b"}}, []fate{"lost", "lost"},
			"socket A=www.example.com.a. AAAA=www.example.com.a. timeout socket " + pair, Found, 5},
		{"a server that fails", names.Config{}, []fate{"servfail", "servfail", "servfail", "servfail"}, "socket " + pair + " socket " + pair, Failed, 0},
		{"a server that fails once", names.Config{}, []fate{"servfail", "servfail"}, "socket " + pair + " socket " + pair, Found, 0},
		{"a server that fails for one kind", names.Config{}, []fate{"found", "servfail"}, "socket " + pair, Found, 0},
		{"an answer that was cut off", names.Config{}, []fate{"cut"}, "socket " + pair + " stream " + pair, Found, 0},
		{"a wrong id", names.Config{}, []fate{"other id", "found"}, "socket " + pair + " timeout " + pair, Found, 5},
		{"a wrong name", names.Config{}, []fate{"other name", "found"}, "socket " + pair + " timeout " + pair, Found, 5},
		{"a wrong type", names.Config{}, []fate{"other type", "found"}, "socket " + pair + " timeout " + pair, Found, 5},
		{"a query that comes back", names.Config{}, []fate{"no answer", "found"}, "socket " + pair + " timeout " + pair, Found, 5},
		{"malformed answers", names.Config{}, []fate{"malformed", "malformed"}, "socket " + pair + " timeout socket " + pair, Found, 5},
		{"torn answers", names.Config{}, []fate{"torn", "torn", "torn", "torn"}, "socket " + pair + " socket " + pair, Failed, 0},
	} {
		t.Run(x.about, func(t *testing.T) {
			p := resolve(t, name, x.config, true, false)
			got := p.run(t, x.fates...)
			if log := strings.Join(p.log, " "); log != x.want {
				t.Errorf("it did\n%s\nwant\n%s", log, x.want)
			}
			if got != x.result || p.now != x.after*seconds || p.Timeouts != strings.Count(x.want, "timeout") || p.Queries != strings.Count(x.want, "=") {
				t.Errorf("result %d after %d s, %d timeouts, %d queries", got, p.now/seconds, p.Timeouts, p.Queries)
			}
		})
	}
}

func TestOneQuery(t *testing.T) {
	p := resolve(t, "www.example.com", names.Config{}, false, true)
	if got := p.run(t, "lost"); got != Found || strings.Join(p.log, " ") != "stream A=www.example.com. timeout stream A=www.example.com." {
		t.Error(got, p.log)
	}
}

// TestRefused: a server without a listener is not waited for, and the next is asked.
func TestRefused(t *testing.T) {
	c := names.Config{Servers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:53"), netip.MustParseAddrPort("10.0.0.2:53")}}
	p := resolve(t, "www.example.com", c, true, false)
	servers := []int{}
	do := p.Begin(p.names, 0, 1)
	for ; do == Reopen; do = p.Refuse(0) {
		servers = append(servers, p.Server())
	}
	if do != Done || p.Result != Failed || !slices.Equal(servers, []int{0, 1, 0, 1}) {
		t.Errorf("%d, result %d, servers %v", do, p.Result, servers)
	}
}

func TestNoServer(t *testing.T) {
	if _, err := New("a.b", names.Config{}, true, false); err == nil {
		t.Error("no error")
	}
}

// TestServer: what is no question is not answered; a name that is not the server's does not exist; case does not matter.
func TestServer(t *testing.T) {
	s, err := NewServer("www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewServer(""); err != nil {
		t.Errorf("the root: %v", err)
	}
	for _, bad := range [][]byte{nil, make([]byte, 11), make([]byte, 12), {0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1}} {
		if got := s.Answer(bad, nil); got != nil {
			t.Errorf("%x is answered with %x", bad, got)
		}
	}
	for _, x := range []struct {
		name    string
		kind    dnsmessage.Type
		code    dnsmessage.RCode
		answers int
	}{
		{"WWW.example.COM.", dnsmessage.TypeA, 0, 1}, {"www.example.com.", dnsmessage.TypeAAAA, 0, 1}, {"www.example.com.", dnsmessage.TypeTXT, 0, 0},
		{"www.example.com.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
	} {
		q, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 9}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(x.name), Type: x.kind, Class: dnsmessage.ClassINET}}}).Pack()
		if err != nil {
			t.Fatal(err)
		}
		var m dnsmessage.Message
		if err := m.Unpack(s.Answer(q, make([]byte, 0, MaxMessage))); err != nil || m.ID != 9 || m.RCode != x.code || len(m.Answers) != x.answers || !m.Authoritative {
			t.Errorf("%s %s: %+v, %v", x.name, x.kind, m, err)
		}
	}
}

// TestAllocations: a resolution and its answers need no memory of their own.
func TestAllocations(t *testing.T) {
	n, err := New("www.example.com", names.Config{Servers: make([]netip.AddrPort, 1), Timeout: time.Second, Attempts: 1, Search: []string{"a"}, Ndots: 5}, true, false)
	s, failed := NewServer("www.example.com")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	var l Lookup
	query, out := make([]byte, MaxMessage), make([]byte, 0, MaxMessage)
	if each := testing.AllocsPerRun(100, func() {
		for do := l.Begin(n, 0, 5); do != Done; {
			for m := l.Due(query); m != nil; m = l.Due(query) {
				do = l.Take(s.Answer(m, out), 0)
			}
		}
	}); each > 0 || l.Result != Found {
		t.Errorf("%v allocations, result %d", each, l.Result)
	}
}

// FuzzTake: no message ends a resolution with a fault of ours.
func FuzzTake(f *testing.F) {
	n, err := New("a.b", names.Config{Servers: make([]netip.AddrPort, 1), Attempts: 1}, true, false)
	if err != nil {
		f.Fatal(err)
	}
	s, err := NewServer("a.b")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Answer(n.questions[0].query[0], nil))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var l Lookup
		l.Begin(n, 0, 0)
		l.Take(b, 0)
		s.Answer(b, nil)
	})
}
