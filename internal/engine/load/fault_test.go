package load

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/vishvananda/netlink"
)

func TestNobodyListens(t *testing.T) {
	needNamespace(t)
	for _, w := range []plan.Workload{{Spec: plan.Stream{}}, {Spec: plan.RR{}}, {Spec: plan.RR{Protocol: plan.UDP}}, {Spec: plan.Stream{Protocol: plan.UDP}}} {
		o := options(w)
		o.Side, o.Port = control.SideClient, 9
		if _, err := Prepare(t.Context(), o); kindOf(err) != refused.String() {
			t.Errorf("%s: %v", w, err)
		}
	}
	o := options(plan.Workload{Spec: plan.CRR{}})
	o.Port = 9
	c := prepare(t, control.SideClient, o)
	if r := wait(t, start(t.Context(), c), 1)[0]; kindOf(r.err) != refused.String() {
		t.Errorf("crr: %v", r.err)
	}
}

func TestNobodyComes(t *testing.T) {
	needNamespace(t)
	for _, w := range []plan.Workload{{Spec: plan.Stream{}}, {Spec: plan.RR{Protocol: plan.UDP}}, {Spec: plan.CRR{}}} {
		s := prepare(t, control.SideServer, options(w))
		if r := wait(t, start(t.Context(), s), 1)[0]; kindOf(r.err) != KindNoTraffic {
			t.Errorf("%s: %v", w, r.err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	good := options(plan.Workload{Spec: plan.RR{}})
	good.Side, good.Port = control.SideClient, 1
	for name, spoil := range map[string]func(*control.Prepare){
		"side":       func(o *control.Prepare) { o.Side = "both" },
		"kind":       func(o *control.Prepare) { o.Workload = plan.Workload{} },
		"protocol":   func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.RR{Protocol: "sctp"}} },
		"address":    func(o *control.Prepare) { o.Address = "localhost" },
		"no address": func(o *control.Prepare) { o.Address = "" },
		"port":       func(o *control.Prepare) { o.Port = 0 },
		"large port": func(o *control.Prepare) { o.Port = 65536 },
		"window":     func(o *control.Prepare) { o.Window = 0 },
		"warm-up":    func(o *control.Prepare) { o.Warmup = -1 },
		"rows":       func(o *control.Prepare) { o.Interval = 1 },
		"flows":      func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.RR{Flows: 1024 + 1}} },
		"request":    func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.RR{RequestSize: -1}} },
		"response":   func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.RR{ResponseSize: plan.MaxRequest + 1}} },
		"datagram": func(o *control.Prepare) {
			o.Workload = plan.Workload{Spec: plan.RR{Protocol: plan.UDP, RequestSize: 15}}
		},
		"ping payload": func(o *control.Prepare) { o.Workload = plan.Workload{Spec: plan.Ping{MessageSize: 65508}} },
	} {
		o := good
		spoil(&o)
		if _, err := Prepare(t.Context(), o); kindOf(err) != KindUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownCongestionControlNamesTheChoices(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.Stream{Congestion: "hearsay"}})
	o.Side = control.SideServer
	_, err := Prepare(t.Context(), o)
	if kindOf(err) != unsupported.String() || !strings.Contains(err.Error(), "reno") {
		t.Errorf("%v", err)
	}
}

func TestPortInUse(t *testing.T) {
	needNamespace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := options(plan.Workload{Spec: plan.RR{}})
	o.Side, o.Port = control.SideServer, l.Addr().(*net.TCPAddr).Port
	if _, err := Prepare(t.Context(), o); kindOf(err) != inUse.String() {
		t.Errorf("%v", err)
	}
}

// TestStrangersAreNoFlows: whoever connects and does not greet neither takes a flow's place nor ends the trial.
func TestStrangersAreNoFlows(t *testing.T) {
	needNamespace(t)
	for _, w := range []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.RR{Protocol: plan.UDP}}} {
		o := options(w)
		s := prepare(t, control.SideServer, o)
		o.Port = s.Port()
		for _, say := range []string{"", "GET / HTTP/1.1\r\n\r\n"} {
			conn, err := net.Dial(string(o.Workload.Normalize().Traits().Protocol), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(o.Port)).String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(say)); err != nil {
				t.Fatal(err)
			}
		}
		c := prepare(t, control.SideClient, o)
		serving, loading := start(t.Context(), s), start(t.Context(), c)
		if r := wait(t, loading, 1)[0]; r.err != nil || failures(r.o) > 0 {
			t.Errorf("%s client: %v %+v", w, r.err, r.o)
		}
		if r := wait(t, serving, 1)[0]; r.err != nil || failures(r.o) > 0 {
			t.Errorf("%s server: %v %+v", w, r.err, r.o)
		}
	}
}

func TestServerThatIsNoneOfOurs(t *testing.T) {
	needNamespace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
		}
	}()
	o := options(plan.Workload{Spec: plan.RR{}})
	o.Side, o.Port = control.SideClient, l.Addr().(*net.TCPAddr).Port
	if _, err := Prepare(t.Context(), o); kindOf(err) != protocol.String() {
		t.Errorf("%v", err)
	}
}

// TestPeerKilled kills the process of one side in mid-window.
func TestPeerKilled(t *testing.T) {
	for _, c := range []struct {
		workload plan.Workload
		killed   string
		want     string // kind of the survivor's error, or of a counted failure
	}{
		{plan.Workload{Spec: plan.Stream{}}, control.SideServer, reset.String()},
		{plan.Workload{Spec: plan.Stream{}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.Stream{Reverse: true}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.RR{Flows: 2}}, control.SideServer, reset.String()},
		{plan.Workload{Spec: plan.RR{Flows: 2}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.RR{Protocol: plan.UDP}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 1e7}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 1e7}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 1e7, Reverse: true}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.RR{Rate: 2000, Flows: 2}}, control.SideServer, reset.String()},
		{plan.Workload{Spec: plan.RR{Rate: 2000, Flows: 2}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.RR{Rate: 2000, Protocol: plan.UDP}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.RR{Arrival: plan.Saturate}}, control.SideServer, reset.String()},
		{plan.Workload{Spec: plan.RR{Wait: "spin"}}, control.SideServer, reset.String()},
		{plan.Workload{Spec: plan.RR{Wait: "spin"}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.CRR{Rate: 2000}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.CRR{Arrival: plan.Saturate}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.CRR{}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.HTTP{Rate: 2000}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.HTTP{Rate: 2000}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.HTTP{Rate: 2000, Connection: "close"}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.HTTP{}}, control.SideServer, refused.String()},
		{plan.Workload{Spec: plan.HTTP{}}, control.SideClient, gone.String()},
		{plan.Workload{Spec: plan.HTTP{Connection: "close"}}, control.SideServer, refused.String()},
	} {
		t.Run(c.workload.String()+" "+c.killed, func(t *testing.T) {
			t.Parallel()
			o := options(c.workload)
			o.Window = 600 * time.Millisecond
			got := killMidway(t, o, c.killed)
			switch {
			case got.err != nil && kindOf(got.err) != c.want:
				t.Errorf("%v, want kind %q", got.err, c.want)
			case got.err == nil && got.o.Errors[c.want] == 0:
				t.Errorf("counted %v, want %q", got.o.Errors, c.want)
			}
		})
	}
}

// killMidway runs the killed side in a process and returns what the survivor saw.
func killMidway(t *testing.T, o control.Prepare, killed string) result {
	t.Helper()
	var p *process
	var survivor *Trial
	o.Side = killed
	if killed == control.SideServer {
		p = sideProcess(t, o)
		o.Port = p.port
		survivor = prepare(t, control.SideClient, o)
	} else {
		needNamespace(t)
		survivor = prepare(t, control.SideServer, o)
		o.Port = survivor.Port()
		p = sideProcess(t, o)
	}
	p.run(t)
	done := start(t.Context(), survivor)
	time.Sleep(o.Warmup + o.Window/3)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	return wait(t, done, 1)[0]
}

// blackhole makes addresses behind which every packet vanishes: a veth whose far end lives in an empty namespace.
func blackhole(t *testing.T) netip.Addr {
	t.Helper()
	needNamespace(t)
	far, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "hole"}, PeerName: "far", PeerNamespace: netlink.NsFd(far.FD())}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	must(t, netlink.LinkAdd(veth))
	t.Cleanup(func() { _ = netlink.LinkDel(veth) })
	link, err := netlink.LinkByName("hole")
	must(t, err)
	must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.IP{10, 77, 0, 1}, Mask: net.CIDRMask(24, 32)}}))
	must(t, netlink.LinkSetUp(link))
	must(t, far.Do(func() error {
		l, err := netlink.LinkByName("far")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	}))
	must(t, netlink.NeighAdd(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.IP{10, 77, 0, 2}, HardwareAddr: mac,
	}))
	return netip.MustParseAddr("10.77.0.2")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBlackhole(t *testing.T) {
	address := blackhole(t).String()
	for _, w := range []plan.Workload{{Spec: plan.CRR{Flows: 2}}, {Spec: plan.Ping{}}, {Spec: plan.CRR{Rate: 500}}, {Spec: plan.CRR{Arrival: plan.Saturate}}} {
		o := options(w)
		o.Address, o.Port, o.Timeout = address, 7, 40*time.Millisecond
		c := prepare(t, control.SideClient, o)
		if r := wait(t, start(t.Context(), c), 1)[0]; kindOf(r.err) != timedOut.String() {
			t.Errorf("%s: %v", w, r.err)
		}
	}
	for _, p := range []plan.Protocol{plan.TCP, plan.UDP} {
		o := options(plan.Workload{Spec: plan.RR{Protocol: p}})
		o.Side, o.Address, o.Port = control.SideClient, address, 7
		if p == plan.TCP {
			if _, err := Prepare(t.Context(), o); kindOf(err) != timedOut.String() {
				t.Errorf("rr over %s: %v", p, err)
			}
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := Prepare(ctx, o); kindOf(err) != KindCancelled || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("rr over %s: %v", p, err)
		}
		cancel()
	}
}

func TestNoRoute(t *testing.T) {
	needNamespace(t)
	for _, w := range []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.Ping{}}} {
		o := options(w)
		o.Side, o.Address, o.Port = control.SideClient, "192.0.2.1", 7
		if _, err := Prepare(t.Context(), o); kindOf(err) != noRoute.String() {
			t.Errorf("%s: %v", w, err)
		}
	}
}

// TestLossyServer: every fourth reply is lost, and every fifth comes after the client has given it up and asked again.
// The run goes on, and only replies in time count.
func TestLossyServer(t *testing.T) {
	needNamespace(t)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IP{127, 0, 0, 1}})
	must(t, err)
	defer conn.Close()
	answered := make(chan uint64, 1)
	o := options(plan.Workload{Spec: plan.RR{Protocol: plan.UDP}})
	o.Timeout, o.Warmup, o.Window = 10*time.Millisecond, 0, 400*time.Millisecond
	go lossyServer(conn, answered)
	o.Port = conn.LocalAddr().(*net.UDPAddr).Port
	c := prepare(t, control.SideClient, o)
	r := wait(t, start(t.Context(), c), 1)[0]
	if r.err != nil {
		t.Fatal(r.err)
	}
	conn.Close()
	good := <-answered
	if r.o.Errors[timedOut.String()] < 2 || r.o.Operations < 2 || len(r.o.Errors) != 1 {
		t.Errorf("%d operations, errors %v", r.o.Operations, r.o.Errors)
	}
	// At each edge one may be under way; a client that was held up gives up on a good reply.
	if r.o.Operations > good || r.o.Operations+r.o.Errors[timedOut.String()] < good {
		t.Errorf("%d operations, %d replies in time, errors %v", r.o.Operations, good, r.o.Errors)
	}
}

// lossyServer returns how many requests it answered in time.
func lossyServer(conn *net.UDPConn, answered chan<- uint64) {
	var good uint64
	defer func() { answered <- good }()
	var stale []byte
	b := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if stale != nil {
			_, _ = conn.WriteToUDPAddrPort(stale, from)
			stale = nil
		}
		seq := binary.BigEndian.Uint64(b)
		switch {
		case isGreeting(b[:n]):
		case seq%4 == 0:
			continue
		case seq%5 == 0:
			stale = append([]byte(nil), b[:n]...)
			continue
		default:
			good++
		}
		_, _ = conn.WriteToUDPAddrPort(b[:n], from)
	}
}

func TestCancel(t *testing.T) {
	for _, w := range everyWorkload {
		t.Run(w.String(), func(t *testing.T) {
			needNamespace(t)
			o := options(w)
			o.Window = time.Hour
			o.Interval = time.Minute
			s, c := pair(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			serving, loading := start(ctx, s), start(ctx, c)
			time.AfterFunc(50*time.Millisecond, cancel)
			for _, r := range []result{wait(t, serving, 1)[0], wait(t, loading, 1)[0]} {
				if kindOf(r.err) != KindCancelled || !errors.Is(r.err, context.Canceled) {
					t.Errorf("%v", r.err)
				}
			}
		})
	}
}

func TestCancelInABlackhole(t *testing.T) {
	o := options(plan.Workload{Spec: plan.CRR{}})
	o.Address, o.Port, o.Timeout, o.Window, o.Interval = blackhole(t).String(), 7, time.Hour, time.Hour, 0
	c := prepare(t, control.SideClient, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r := wait(t, start(ctx, c), 1)[0]; kindOf(r.err) != KindCancelled {
		t.Errorf("%v", r.err)
	}
	closed := make(chan result, 1)
	go func() { closed <- result{err: c.Close()} }()
	if r := wait(t, closed, 1)[0]; r.err != nil {
		t.Error(r.err)
	}
}

func TestCloseWithoutRun(t *testing.T) {
	for _, w := range everyWorkload {
		needNamespace(t)
		s, c := pair(t, options(w))
		for _, side := range []*Trial{c, s, s} {
			closed := make(chan result, 1)
			go func() { closed <- result{err: side.Close()} }()
			if r := wait(t, closed, 1)[0]; r.err != nil {
				t.Errorf("%s: %v", w, r.err)
			}
		}
	}
}

// TestPortsRunOut leaves the client of crr two local ports for three connections at a time.
func TestPortsRunOut(t *testing.T) {
	needNamespace(t)
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	before, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte("40000 40001"), 0))
	t.Cleanup(func() { must(t, os.WriteFile(file, before, 0)) })
	o := options(plan.Workload{Spec: plan.CRR{Flows: 8, ResponseSize: 1 << 20}})
	o.Port = 21000 // no port that the connection of a test before may have been given
	s := prepare(t, control.SideServer, o)
	c := prepare(t, control.SideClient, o)
	start(t.Context(), s)
	r := wait(t, start(t.Context(), c), 1)[0]
	if kindOf(r.err) == noPort.String() {
		return // on a slow machine the two ports may be held for the whole window
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	if r.o.Errors[noPort.String()] == 0 || r.o.Operations == 0 {
		t.Errorf("%d operations, errors %v", r.o.Operations, r.o.Errors)
	}
}

func TestDescriptorsRunOut(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.CRR{}})
	s, c := pair(t, o)
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max}))
	serving := start(t.Context(), s)
	if r := wait(t, start(t.Context(), c), 1)[0]; kindOf(r.err) != descriptors.String() {
		t.Errorf("%v", r.err)
	}
	wait(t, serving, 1)
}

// A connection whose request was lost holds up one thread of a server of crr, and the others take what waits.
func TestLostRequestHoldsUpOneThread(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.CRR{Flows: 2}})
	server := prepare(t, control.SideServer, o)
	o.Port = server.Port()
	lost, err := net.Dial("tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close()
	serving := start(t.Context(), server)
	client := prepare(t, control.SideClient, o)
	got := wait(t, start(t.Context(), client), 1)[0]
	if got.err != nil {
		t.Fatal(got.err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	lost.Close()
	wait(t, serving, 1)
	// With a listener for each thread, half of all connections would wait for the one that is held up: two or three succeed.
	if got.o.Operations < 30 {
		t.Errorf("%d transactions, errors %v", got.o.Operations, got.o.Errors)
	}
}
