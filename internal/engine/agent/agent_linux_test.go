package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
)

// beAgent makes the test binary an agent, as the program is one when it is started as such.
const beAgent = "CNIBENCH_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(beAgent) == "" {
		os.Exit(m.Run())
	}
	if err := Serve(context.Background(), os.Stdin, os.Stdout, "test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// place is a namespace with a loopback, in which agents are started.
type place struct {
	ns      *netns.NS
	starter *netns.Starter
}

// placeAddress is an address of a place besides 127.0.0.1: netperf resolves no address at all where there is only that.
const placeAddress = "10.9.8.7"

func newPlace(t *testing.T) *place {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := link.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Up("lo"); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(link.Address{Dev: "lo", Addr: netip.PrefixFrom(netip.MustParseAddr(placeAddress), 32)}); err != nil {
		t.Fatal(err)
	}
	p := &place{ns: ns, starter: netns.NewStarter()}
	t.Cleanup(func() {
		p.starter.Close()
		h.Close()
		ns.Close()
	})
	return p
}

// process is an agent and its three streams.
type process struct {
	io.WriteCloser
	out    io.ReadCloser
	cmd    *exec.Cmd
	exited chan error

	mu    sync.Mutex
	words strings.Builder
}

func (p *process) Read(b []byte) (int, error) { return p.out.Read(b) }

func (p *process) LastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.words.String()
}

// stderr collects last words.
type stderr struct{ p *process }

func (s stderr) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.words.Write(b)
}

func (pl *place) start(t *testing.T) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), exited: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), beAgent+"=1")
	p.cmd.Stderr = stderr{p}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Wait closes a StdoutPipe under its reader; a pipe of our own is read to its end.
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.WriteCloser, p.out, p.cmd.Stdout = in, out, w
	if err := pl.starter.Start(pl.ns, p.cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() {
		in.Close()
		_ = p.cmd.Process.Kill()
		out.Close()
	})
	return p
}

func (pl *place) dial(t *testing.T) (*control.Client, *process) {
	t.Helper()
	p := pl.start(t)
	c, err := control.Dial(t.Context(), control.Endpoint{Name: "test", Start: func(context.Context) (io.ReadWriteCloser, error) { return p, nil }})
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine must not fail the test that it is busy.
	c.HeartbeatLimit = 30 * time.Second
	t.Cleanup(func() { c.Close() })
	return c, p
}

// ask is a short trial; port 0 lets the server choose.
func ask(side string, w plan.Workload, port int) control.Prepare {
	return control.Prepare{Side: side, Workload: w.Normalize(), Address: "127.0.0.1", Port: port,
		Warmup: 20 * time.Millisecond, Window: 200 * time.Millisecond, Timeout: time.Second}
}

func kindOf(err error) string {
	var e *control.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return fmt.Sprint(err)
}

func prepare(t *testing.T, c *control.Client, p control.Prepare) control.Ready {
	t.Helper()
	ready, err := c.Prepare(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

func start(t *testing.T, clients ...*control.Client) {
	t.Helper()
	for _, c := range clients {
		if err := c.Start(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTrials runs trial after trial through the same two agents, on the same port.
func TestTrials(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	one := cpus[len(cpus)-1:]
	port := 0
	for _, w := range []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.CRR{}}, {Spec: plan.Stream{}}, {Spec: plan.RR{Protocol: plan.UDP}}} {
		s, c := ask(control.SideServer, w, port), ask(control.SideClient, w, 0)
		s.CPUs, c.CPUs = one, one
		port = prepare(t, server, s).Port
		c.Port = port
		prepare(t, client, c)
		start(t, server, client)
		for side, agent := range map[string]*control.Client{control.SideServer: server, control.SideClient: client} {
			o, err := agent.Wait(t.Context())
			if err != nil {
				t.Fatalf("%s, %s: %v", w, side, err)
			}
			if o.Side != side || o.Operations == 0 || o.ElapsedNs < int64(c.Window)/2 || o.CPU.ThreadsNs <= 0 || o.CPU.ProcessNs < o.CPU.ThreadsNs/2 { // the clocks are read one after the other
				t.Errorf("%s: %s saw %+v", w, side, o)
			}
			h := o.Host
			if h == nil || len(h.CPUs) != 1 || h.CPUs[one[0]] == nil || h.MemoryBytes == 0 || h.NodeMemoryUsedBytes == 0 {
				t.Fatalf("%s: %s: the machine's counters are %+v", w, side, h)
			}
			counter := "Tcp.OutSegs"
			if w.Normalize().Traits().Protocol == plan.UDP {
				counter = "Udp.OutDatagrams"
			}
			// Both ends are in this namespace, and nothing else is.
			if h.SNMP[counter] <= 0 || h.Devices["lo.tx_packets"] <= 0 {
				t.Errorf("%s: %s: %s grew by %d, lo.tx_packets by %d", w, side, counter, h.SNMP[counter], h.Devices["lo.tx_packets"])
			}
		}
	}
}

// TestPinnedWithoutAPath: where the CPUs of the path are not known, load threads run on the CPUs that the agent is told.
// They are among those that it has reported as idle. The counters are those of all CPUs.
func TestPinnedWithoutAPath(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	cpus, err := thread.CPUs()
	idle := client.Hello().Idle
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(idle)), cpus) {
		t.Fatalf("idle %v of %v: %v", idle, cpus, err)
	}
	w := plan.Workload{Spec: plan.RR{}}
	s, c := ask(control.SideServer, w, 0), ask(control.SideClient, w, 0)
	s.Pinned, c.Pinned = idle[:1], idle[:1]
	c.Port = prepare(t, server, s).Port
	prepare(t, client, c)
	start(t, server, client)
	for _, agent := range []*control.Client{server, client} {
		o, err := agent.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.LoadCPUs, idle[:1]) || len(o.Host.CPUs) != len(cpus) {
			t.Errorf("load on %v, counters of %d CPUs", o.LoadCPUs, len(o.Host.CPUs))
		}
	}
}

// TestDelayedStart: a server that is told to wait serves meanwhile, and its window begins when that of a client far away
// does. Before, half of the server's window was over when the client began.
func TestDelayedStart(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	s := ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0)
	c := ask(control.SideClient, s.Workload, prepare(t, server, s).Port)
	prepare(t, client, c)
	const late = 100 * time.Millisecond
	begin := time.Now()
	if err := server.Start(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	way := time.NewTimer(late - time.Since(begin)) // to a client far away
	<-way.C
	start(t, client)
	o, err := server.Wait(t.Context())
	if took := time.Since(begin); err != nil || took < late+s.Warmup+s.Window {
		t.Fatalf("the server ended after %v: %v", took, err)
	}
	if _, err := client.Wait(t.Context()); err != nil || o.Operations == 0 {
		t.Errorf("%d requests served: %v", o.Operations, err)
	}
	if server.RoundTrip() <= 0 || server.RoundTrip() > time.Since(begin) {
		t.Errorf("a round trip of %v", server.RoundTrip())
	}
}

// TestServerServesOn: a server that has answered must not cut its client, whose window is longer here. The other way
// round, a client that has answered must not look like one that went.
func TestServerServesOn(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	c := ask(control.SideClient, plan.Workload{Spec: plan.CRR{}}, prepare(t, server, ask(control.SideServer, plan.Workload{Spec: plan.CRR{}}, 0)).Port)
	c.Window *= 4
	prepare(t, client, c)
	start(t, server, client)
	if _, err := server.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := client.Wait(t.Context())
	if err != nil || len(o.Errors) != 0 {
		t.Fatalf("the client saw %+v, %v", o, err)
	}
	// The server's window is the longer one now; the client stands by without sending.
	s := ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0)
	s.Window *= 2
	c = ask(control.SideClient, s.Workload, prepare(t, server, s).Port)
	prepare(t, client, c)
	start(t, server, client)
	if o, err := server.Wait(t.Context()); err != nil || len(o.Errors) != 0 || o.ElapsedNs < int64(s.Window)*3/4 {
		t.Errorf("the server saw %+v, %v", o, err)
	}
	// And when it is let go, its port is free for another process.
	if err := server.Cancel(); err != nil {
		t.Fatal(err)
	}
	other, _ := pl.dial(t)
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err = other.Prepare(t.Context(), ask(control.SideServer, plan.Workload{Spec: plan.CRR{}}, c.Port))
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		t.Errorf("port %d after cancel: %v", c.Port, err)
	}
}

func TestCancelInMidTrial(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	for range 3 {
		s := ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0)
		s.Window = time.Hour
		c := ask(control.SideClient, s.Workload, prepare(t, server, s).Port)
		c.Window = time.Hour
		prepare(t, client, c)
		start(t, server, client)
		for _, agent := range []*control.Client{client, server} {
			if err := agent.Cancel(); err != nil {
				t.Fatal(err)
			}
			_, err := agent.Wait(t.Context())
			// The server may see its client go before it is cancelled itself.
			if kind := kindOf(err); kind != control.KindCancelled && !(agent == server && kind == "peer gone") {
				t.Errorf("cancelled trial: %v", err)
			}
		}
	}
}

func TestFailuresTravel(t *testing.T) {
	pl := newPlace(t)
	client, _ := pl.dial(t)
	_, err := client.Prepare(t.Context(), ask(control.SideClient, plan.Workload{Spec: plan.RR{}}, 9))
	if kindOf(err) != "connection refused" {
		t.Errorf("nobody listens: %v", err)
	}
	_, err = client.Prepare(t.Context(), control.Prepare{Side: "neither"})
	if kindOf(err) != "bad options" {
		t.Errorf("no such side: %v", err)
	}
	// The agent is none the worse for it.
	prepare(t, client, ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0))
}

// raw speaks to an agent line by line.
type raw struct {
	*process
	enc *control.Encoder
	dec *control.Decoder
}

func (pl *place) raw(t *testing.T) raw {
	t.Helper()
	p := pl.start(t)
	r := raw{p, control.NewEncoder(p), control.NewDecoder(p)}
	if m := r.next(t); m.Type != control.TypeHello || m.Hello.Version != control.Version || m.Hello.PID != p.cmd.Process.Pid || m.Hello.Program != "test" {
		t.Fatalf("first word is %+v", m)
	}
	return r
}

func (r raw) say(t *testing.T, m control.Message) {
	t.Helper()
	if err := r.enc.Encode(m); err != nil {
		t.Fatal(err)
	}
}

func (r raw) next(t *testing.T) control.Message {
	t.Helper()
	m, err := r.dec.Decode()
	if err != nil {
		t.Fatalf("%v; %s", err, r.LastWords())
	}
	return m
}

// TestOneTrialAtATime: a prepare in mid-trial is refused, and the trial goes on and beats.
func TestOneTrialAtATime(t *testing.T) {
	r := newPlace(t).raw(t)
	p := ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0)
	r.say(t, control.Message{Type: control.TypePrepare, Trial: 1, Prepare: &p})
	if m := r.next(t); m.Type != control.TypeReady || m.Ready.Port == 0 {
		t.Fatalf("to prepare: %+v", m)
	}
	r.say(t, control.Message{Type: control.TypePrepare, Trial: 2, Prepare: &p})
	beats, busy := 0, false
	for beats < 2 || !busy {
		switch m := r.next(t); m.Type {
		case control.TypeHeartbeat:
			beats++
			if m.Trial != 1 {
				t.Errorf("heartbeat of trial %d", m.Trial)
			}
		case control.TypeError:
			busy = m.Trial == 2 && m.Error.Kind == control.KindBusy
			if !busy {
				t.Fatalf("second prepare: %+v", m.Error)
			}
		default:
			t.Fatalf("unexpected %s", m.Type)
		}
	}
	// A trial that is prepared right behind a cancel waits for its turn.
	r.say(t, control.Message{Type: control.TypeCancel, Trial: 1})
	r.say(t, control.Message{Type: control.TypePrepare, Trial: 3, Prepare: &p})
	var got []string
	for len(got) < 2 {
		if m := r.next(t); m.Type != control.TypeHeartbeat {
			got = append(got, fmt.Sprint(m.Type, " ", m.Trial))
		}
	}
	if want := []string{"error 1", "ready 3"}; !slices.Equal(got, want) {
		t.Errorf("after cancel and prepare: %q, want %q", got, want)
	}
}

// TestEndOfInputEndsTheProcess in each state that an agent can be in.
func TestEndOfInputEndsTheProcess(t *testing.T) {
	pl := newPlace(t)
	for _, state := range []string{"idle", "prepared", "running"} {
		r := pl.raw(t)
		p := ask(control.SideServer, plan.Workload{Spec: plan.RR{}}, 0)
		p.Window = time.Hour
		if state != "idle" {
			r.say(t, control.Message{Type: control.TypePrepare, Trial: 1, Prepare: &p})
			r.next(t)
		}
		if state == "running" {
			r.say(t, control.Message{Type: control.TypeStart, Trial: 1, Start: &control.Start{}})
			for r.next(t).Type != control.TypeStarted {
				continue
			}
		}
		r.Close()
		if err := <-r.exited; err != nil {
			t.Errorf("%s: it ended with %v; %s", state, err, r.LastWords())
		}
	}
}

func TestNonsenseEndsTheProcess(t *testing.T) {
	r := newPlace(t).raw(t)
	if _, err := io.WriteString(r, "GET / HTTP/1.1\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-r.exited; err == nil || !strings.Contains(r.LastWords(), "line 1 is not a message") {
		t.Errorf("it ended with %v, its last words are %q", err, r.LastWords())
	}
}

// TestStepsAside: while a trial stands, only the load's threads may be on its CPUs.
func TestStepsAside(t *testing.T) {
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(cpus) < 2 {
		t.Skipf("the machine lends this test one CPU, %v: there is nowhere to step", cpus)
	}
	pl := newPlace(t)
	server, p := pl.dial(t)
	client, _ := pl.dial(t)
	last := cpus[len(cpus)-1]
	ready := prepare(t, server, control.Prepare{Side: control.SideServer, Workload: plan.Workload{Spec: plan.RR{Flows: 2}}.Normalize(), CPUs: []int{last}, Window: time.Hour, Timeout: time.Second})
	prepare(t, client, ask(control.SideClient, plan.Workload{Spec: plan.RR{Flows: 2}}, ready.Port))
	start(t, server)
	aside, load := 0, 0
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, list, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		list = strings.Fields(list)[0]
		switch {
		case list == fmt.Sprint(last):
			load++
		case !strings.HasSuffix(list, fmt.Sprint(last)):
			aside++
		default:
			t.Errorf("%s may run on %s, the load's CPU included", name, list)
		}
	}
	if load != 2 || aside == 0 {
		t.Errorf("%d threads of the load and %d others, want 2 and some", load, aside)
	}
}

// TestNextTrialAfterAFailedPeer: a server whose client has failed is free for the next trial.
func TestNextTrialAfterAFailedPeer(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	p := byTool(t, control.SideServer, "rr")
	p.Window = time.Hour
	for range 2 {
		if _, err := server.Prepare(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
}
