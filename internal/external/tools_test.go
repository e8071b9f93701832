package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func parse(t testing.TB, s string) plan.Workload {
	t.Helper()
	w, err := plan.ParseWorkload(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// asked are the workloads whose command lines are golden.
var asked = []string{
	"stream(tool=iperf3)", "stream(flows=4,message=1Ki,congestion=bbr,reverse,tool=iperf3)", "stream(udp,rate=1G,flows=4,tool=iperf3)", "stream(udp,tool=iperf3)",
	"stream(tool=netperf)", "stream(reverse,tool=netperf)", "stream(udp,tool=netperf)", "rr(tool=netperf)", "rr(udp,request=100,response=200,tool=netperf)", "crr(tool=netperf)",
	"http(tool=wrk)", "http(threads=4,connections=500,connection=close,backends=5,tool=wrk)",
	"http(tool=hey)", "http(connections=4,rate=1000,arrival=constant,connection=close,tool=hey)",
	"ping(tool=ping)", "ping(message=1400,interval=10ms,tool=ping)",
	"stream(flows=4,tool=neper)", "rr(flows=3,request=100,tool=neper)", "crr(tool=neper)",
	"rr(udp,tool=sockperf)", "rr(request=64,response=64,tool=sockperf)",
}

func TestCommands(t *testing.T) {
	var b strings.Builder
	for _, s := range asked {
		w := parse(t, s)
		for _, address := range []string{"10.0.0.1", "fd00::1"} {
			a := Ask{Workload: w, Address: address, Port: 5201, Window: 1500 * time.Millisecond, Warmup: 100 * time.Millisecond}
			fmt.Fprintf(&b, "%s\n  client  %s\n", w, strings.Join(Client(a), " "))
			if argv := Server(a); argv != nil {
				fmt.Fprintf(&b, "  server  %s\n", strings.Join(argv, " "))
			}
			if address == "10.0.0.1" {
				fmt.Fprintf(&b, "  life    %s\n  limits  %s\n", Life(a), Limits(a))
			}
			if Client(a)[0] != Program(w) {
				t.Errorf("%s runs %s", w, Client(a)[0])
			}
		}
	}
	golden.Check(t, "commands.txt", []byte(b.String()))
}

// TestAnyAddress binds servers where no address is given.
func TestAnyAddress(t *testing.T) {
	for _, s := range asked {
		a := Ask{Workload: parse(t, s), Port: 1, Window: time.Second}
		for _, word := range Server(a) {
			if word == "" {
				t.Errorf("%s: an empty word in %q", s, Server(a))
			}
		}
	}
}

// read gives Read the output that package foreign keeps as an example.
func read(t *testing.T, workload, file string, exit error) (Outcome, error) {
	t.Helper()
	found, err := filepath.Glob("*/testdata/" + file)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", file, found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return ReadOutput(Ask{Workload: parse(t, workload), Window: time.Second}, Output{Stdout: b, Exit: exit})
}

func TestReadOutput(t *testing.T) {
	for _, tt := range []struct {
		workload, file string
		metric         string
		version        string
	}{
		{"stream(tool=iperf3)", "iperf3/tcp.json", metric.Goodput, "3.12"},
		{"stream(udp,rate=100M,tool=iperf3)", "iperf3/udp.json", metric.PacketRate, "3.12"},
		{"http(tool=wrk)", "wrk/wrk_lat.txt", "response_time.p99", ""},
		{"http(tool=hey)", "hey/hey.txt", metric.RequestRate, ""},
		{"ping(tool=ping)", "ping/ping.txt", "rtt.mean", ""},
		{"rr(request=16,response=16,tool=sockperf)", "sockperf/sp_pp_tcp.txt", metric.TransactionRate, "3.7-no.git"},
		{"rr(request=1024,response=1024,tool=netperf)", "netperf/keyval.txt", "rtt.p99", ""},
	} {
		o, err := read(t, tt.workload, tt.file, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if o.Metrics[tt.metric] <= 0 || o.Version != tt.version || o.Window <= 0 || o.Work <= 0 {
			t.Errorf("%s: %+v", tt.file, o)
		}
		for _, n := range o.Notes {
			if n.ID == "assumed" {
				t.Errorf("%s: assumes what not the requested: %s", tt.file, n.Message)
			}
		}
	}
}

// TestWork counts what was done in the life of a client, which is more than what its window has.
func TestWork(t *testing.T) {
	o, err := read(t, "stream(tool=iperf3)", "iperf3/tcp.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows float64
	for _, row := range o.Series.Intervals {
		rows += float64(row.Bytes)
	}
	if o.Work != rows/1000 {
		t.Errorf("%v KB of %v bytes", o.Work, rows)
	}
	if o, err = read(t, "rr(request=16,response=16,tool=sockperf)", "sockperf/sp_pp_tcp.txt", nil); err != nil {
		t.Fatal(err)
	}
	if window := o.Metrics[metric.TransactionRate] * o.Window.Seconds(); o.Work <= window {
		t.Errorf("%v transactions in all, %v in the window", o.Work, window)
	}
}

func TestReadFails(t *testing.T) {
	exit := errors.New("exit status 1")
	for _, tt := range []struct {
		workload, file string
		exit           error
		kind, says     string
	}{
		{"stream(tool=iperf3)", "iperf3/refused.json", exit, "connection refused", "iperf3: "},
		{"stream(tool=iperf3)", "iperf3/cut.json", nil, KindOutput, "it is cut in the middle"},
		{"stream(tool=iperf3)", "iperf3/cut.json", exit, KindExit, "exit status 1: it wrote"},
		{"stream(tool=iperf3)", "iperf3/tcp_rev.json", nil, KindOutput, "it sent stream("},
		{"stream(tool=iperf3)", "iperf3/tcp.json", exit, KindExit, "exit status 1"},
		{"stream(tool=iperf3)", "iperf3/two.json", nil, KindOutput, "2 results"},
		{"stream(tool=iperf3)", "iperf3/tcp_bidir.json", nil, KindOutput, "bidirectional), not the requested"},
		{"stream(udp,tool=iperf3)", "iperf3/tcp.json", nil, KindOutput, "not the requested"},
		{"http(tool=wrk)", "wrk/wrk_404.txt", nil, "status", "none of"},
		{"http(tool=wrk)", "ping/ping.txt", nil, KindOutput, "cannot read its output"},
		{"http(tool=hey)", "hey/hey_refused.txt", nil, "connection refused", "hey: "},
		{"ping(tool=ping)", "ping/lost.txt", exit, "timeout", "echoes was answered"},
		{"ping(tool=ping)", "ping/locale.txt", nil, KindOutput, "another locale"},
		{"rr(udp,tool=sockperf)", "sockperf/sp_tp.txt", nil, KindOutput, "throughput test"},
		{"rr(tool=netperf)", "netperf/refused.txt", exit, "", "netperf: "},
	} {
		_, err := read(t, tt.workload, tt.file, tt.exit)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v", tt.file, err)
			continue
		}
		if tt.kind != "" && e.Kind != tt.kind || e.Kind == "" || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q %v, want %q, %q", tt.file, e.Kind, err, tt.kind, tt.says)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct{ tool, says, want string }{
		{"iperf3", "iperf 3.12 (cJSON 1.7.15)\nLinux h 6.1 #1 SMP x86_64\n", "3.12"},
		{"wrk", "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk <options> <url>\n", "debian/4.1.0-3+b2"},
		{"ping", "ping from iputils 20221126\nlibcap: yes\n", "iputils 20221126"},
		{"sockperf", "sockperf, version 3.7-no.git\n   compiled 2021-08-23\n", "3.7-no.git"},
		{"netperf", "Netperf version 2.7.0\n", "2.7.0"},
		{"wrk", "", ""},
		{"ping", "ping: invalid option -- 'V'", ""},
	} {
		if got := parseVersion(sender(plan.Workload{Tool: tt.tool}), []byte(tt.says)); got != tt.want {
			t.Errorf("%s says %q: got %q, want %q", tt.tool, tt.says, got, tt.want)
		}
	}
}

func TestEveryToolIsKnown(t *testing.T) {
	for _, name := range plan.ToolNames() {
		if _, ok := Sending(name); !ok {
			t.Errorf("plans know %s, and package external does not", name)
		}
	}
	if _, err := Find("neper", "no such program"); err == nil || !strings.Contains(err.Error(), "neper: program no such program not found") {
		t.Error(err)
	}
}

// FuzzReadOutput gives every tool's reader whatever comes: an outcome with something in it, or an error that can be counted.
func FuzzReadOutput(f *testing.F) {
	for i, s := range asked {
		f.Add(i, []byte(s), []byte("x"), i%2 == 0)
	}
	files, err := filepath.Glob("*/testdata/*/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for i, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, b, []byte(nil), false)
	}
	f.Fuzz(func(t *testing.T, i int, stdout, stderr []byte, failed bool) {
		var exit error
		if failed {
			exit = errors.New("exit status 1")
		}
		w := parse(t, asked[uint(i)%uint(len(asked))])
		o, err := ReadOutput(Ask{Workload: w, Window: time.Second}, Output{Stdout: stdout, Stderr: stderr, Exit: exit})
		var e *Error
		switch {
		case err == nil && (len(o.Metrics) == 0 || o.Window <= 0 || !(o.Work >= 0) || failed):
			t.Errorf("%+v", o)
		case err != nil && (!errors.As(err, &e) || e.Kind == "" || e.Message == ""):
			t.Errorf("%#v", err)
		}
	})
}

// TestSystemCongestion: who may not choose the congestion control leaves the system's in force.
func TestSystemCongestion(t *testing.T) {
	w := parse(t, "stream(tool=iperf3)")
	for _, system := range []bool{false, true} {
		a := Ask{Workload: w.Normalize(), Address: "192.0.2.1", Port: 1, Window: time.Second, SystemCongestion: system}
		if argv := Client(a); slices.Contains(argv, "-C") == system {
			t.Errorf("system's %v: %q", system, argv)
		}
	}
}
