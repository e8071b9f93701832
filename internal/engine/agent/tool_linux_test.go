package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// byTool asks for one side of a trial by a tool in the namespace of the test.
func byTool(t *testing.T, side, workload string) control.Prepare {
	t.Helper()
	w, err := plan.ParseWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	return control.Prepare{Side: side, Workload: w, Address: placeAddress, CPUs: cpus[len(cpus)-1:],
		Window: time.Second, Timeout: time.Second}
}

// run conducts a trial as package run does, and returns both observations.
func run(t *testing.T, client, server *control.Client, s, c control.Prepare) (*sample.Observation, *sample.Observation, error) {
	t.Helper()
	ready, err := server.Prepare(t.Context(), s)
	if err != nil {
		return nil, nil, err
	}
	if c.Port == 0 {
		c.Port = ready.Port
	}
	if _, err := client.Prepare(t.Context(), c); err != nil {
		return nil, nil, err
	}
	start(t, server, client)
	seen, err := client.Wait(t.Context())
	if err != nil {
		return nil, nil, err
	}
	if err := server.Finish(t.Context()); err != nil {
		return nil, nil, err
	}
	served, err := server.Wait(t.Context())
	return seen, served, err
}

// files returns the names in the working directory.
func files(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestTools runs every tool that is installed through the same two agents.
func TestTools(t *testing.T) {
	before := files(t)
	t.Cleanup(func() {
		if left := files(t); !slices.Equal(left, before) {
			t.Errorf("tools left files in the working directory: %q, before %q", left, before)
		}
	})
	byName := map[string][]measured{}
	for _, m := range []measured{
		{"stream(tool=iperf3)", []string{metric.Goodput, metric.Transferred, metric.RetransmitsPerG}},
		{"stream(tool=iperf3,flows=3,reverse)", []string{metric.Goodput, metric.Transferred}},
		{"stream(udp,rate=100M,flows=2,tool=iperf3)", []string{metric.Goodput, metric.PacketRate, metric.FrameLossRate, metric.Jitter, metric.OfferedLoad}},
		{"http(tool=wrk)", []string{metric.RequestRate, metric.ErrorRate, "response_time.p50", "response_time.p99", "response_time.max"}},
		{"http(tool=wrk,connection=close)", []string{metric.RequestRate}},
		{"http(tool=hey,response=100)", []string{metric.RequestRate, metric.ErrorRate, "response_time.mean"}},
		{"http(tool=hey,rate=1K,arrival=constant)", []string{metric.RequestRate}},
		{"ping(tool=ping)", []string{"rtt.mean", "rtt.max", "rtt.p50", "rtt.p99", metric.ErrorRate}},
		{"ping(tool=ping,interval=10ms)", []string{"rtt.mean"}},
		{"rr(udp,tool=sockperf)", []string{metric.TransactionRate, "rtt.min", "rtt.p50", "rtt.p99"}},
		{"rr(request=100,response=100,tool=sockperf)", []string{metric.TransactionRate, "rtt.mean"}},
		{"rr(flows=2,request=100,tool=neper)", []string{metric.TransactionRate, "rtt.p50", "rtt.p99"}},
		{"crr(tool=neper)", []string{metric.TransactionRate, "rtt.mean"}},
		{"stream(flows=2,tool=neper)", []string{metric.Goodput}},
		{"rr(tool=netperf)", []string{metric.TransactionRate, "rtt.p50"}},
		{"crr(tool=netperf)", []string{metric.TransactionRate}},
		{"stream(tool=netperf)", []string{metric.Goodput}},
		{"stream(udp,tool=netperf)", []string{metric.Goodput, metric.FrameLossRate}},
	} {
		tool := byTool(t, control.SideClient, m.workload).Workload.Tool
		byName[tool] = append(byName[tool], m)
	}
	for tool, list := range byName {
		t.Run(tool, func(t *testing.T) {
			t.Parallel() // they mostly wait: tools take whole seconds
			pl := newPlace(t)
			server, _ := pl.dial(t)
			client, _ := pl.dial(t)
			for _, m := range list {
				testTool(t, client, server, m)
			}
		})
	}
}

// measured is a workload of a tool, and the metrics that it gives.
type measured struct {
	workload string
	want     []string
}

func testTool(t *testing.T, client, server *control.Client, tt measured) {
	t.Helper()
	c := byTool(t, control.SideClient, tt.workload)
	if _, err := exec.LookPath(external.Program(c.Workload)); err != nil {
		t.Logf("%s is not tried: %v", tt.workload, err)
		return
	}
	seen, served, err := run(t, client, server, byTool(t, control.SideServer, tt.workload), c)
	if err != nil {
		t.Errorf("%s: %v", tt.workload, err)
		_, _ = client.Cancel(), server.Cancel() // one of them has ended
		return
	}
	// What neper moved in its life is not known, and so no cost of it.
	noWork := c.Workload.Traits().Bulk() && c.Workload.Tool == "neper"
	if seen.Tool == nil || seen.Tool.Name != c.Workload.Tool || seen.Tool.Work <= 0 != noWork || seen.CPU.ThreadsNs <= 0 || seen.ElapsedNs < int64(time.Second)/2 {
		t.Errorf("%s: the client saw %+v %+v", tt.workload, seen, seen.Tool)
	}
	if !noWork {
		tt.want = append(tt.want, metric.ServiceDemand)
	}
	metrics, warnings := outcome.Derive(c.Workload, seen, served, outcome.Conditions{})
	for _, name := range tt.want {
		if v, ok := metrics[name]; !ok || v < 0 {
			t.Errorf("%s: %s is %v, there: %v", tt.workload, name, v, ok)
		}
	}
	if _, ok := metrics[metric.CPUUtilization]; ok {
		t.Errorf("%s: CPU utilization of a window that is not ours", tt.workload)
	}
	t.Logf("%s: %v %v %v", tt.workload, metrics, warnings, []any{seen.CPU, served.CPU, seen.Tool.Work})
}

// fake puts a program into a directory that comes before all others.
func fake(t *testing.T, program, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n[ \"$1\" = -v ] && exit 1\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestToolStartsLate: the window of our server begins when the tool connects, however long the tool takes to start. Before,
// the server's window could be over by then.
func TestToolStartsLate(t *testing.T) {
	path, err := exec.LookPath("wrk")
	if err != nil {
		t.Skip(err)
	}
	pl := newPlace(t)
	fake(t, "wrk", "sleep 1.2\nexec "+path+` "$@"`)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	seen, served, err := run(t, client, server, byTool(t, control.SideServer, "http(tool=wrk)"), byTool(t, control.SideClient, "http(tool=wrk)"))
	if err != nil {
		t.Fatal(err)
	}
	if share := float64(served.Operations) / seen.Tool.Work; share < 0.4 || share > 1 {
		t.Errorf("the server's window of %v has %d of %v requests", time.Duration(served.ElapsedNs), served.Operations, seen.Tool.Work)
	}
}

const goodWrk = `cat <<END
Running 1s test @ http://127.0.0.1:1/
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    61.25us   10.00us   1.20ms   90.00%
    Req/Sec    80.00k     1.00k   90.00k    70.00%
  Latency Distribution
     50%   60.00us
     75%   65.00us
     90%   70.00us
     99%   90.00us
  100000 requests in 1.00s, 100.00MB read
Requests/sec: 100000.00
Transfer/sec:    100.00MB
END
`

// TestToolsThatFail has tools that do what tools do on a bad day. Each is a failed trial that says which and why.
func TestToolsThatFail(t *testing.T) {
	for name, tt := range map[string]struct{ script, kind, says string }{
		"good":        {goodWrk, "", ""},
		"nothing":     {"exit 0", external.KindOutput, "wrk: it printed nothing"},
		"complaint":   {"echo oh no >&2", external.KindOutput, `it wrote "oh no"`},
		"garbage":     {"head -c 5000 /dev/zero | tr '\\0' '\\377'", external.KindOutput, "cannot read its output"},
		"other":       {"echo '{\"a\":1}'", external.KindOutput, "cannot read its output"},
		"cut":         {strings.Replace(goodWrk, "Requests/sec: 100000.00\n", "", 1), external.KindOutput, "the output is cut off"},
		"locale":      {strings.Replace(goodWrk, "61.25us", "61,25us", 1), external.KindOutput, "another locale"},
		"exit":        {goodWrk + "exit 3", external.KindExit, "exit status 3"},
		"exit, words": {"echo broken pipe >&2; exit 7", external.KindExit, `exit status 7: it wrote "broken pipe"`},
		"signal":      {"kill -SEGV $$", external.KindExit, "segmentation fault"},
		"refused":     {"echo 'unable to connect to 127.0.0.1:1 Connection refused' >&2; exit 1", "connection refused", "unable to connect"},
		"too much":    {"yes", external.KindOutput, "it wrote more than 64 MiB"},
		"another":     {goodWrk + goodWrk, external.KindOutput, "2 results"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := newPlace(t)
			fake(t, "wrk", tt.script)
			client, _ := pl.dial(t)
			server, _ := pl.dial(t)
			_, _, err := run(t, client, server, byTool(t, control.SideServer, "http(tool=wrk)"), byTool(t, control.SideClient, "http(tool=wrk)"))
			if tt.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if kindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "wrk: ") {
				t.Errorf("got %q, %v\nwant %q, %q", kindOf(err), err, tt.kind, tt.says)
			}
		})
	}
}

// TestMissingTool asks for a program that is nowhere.
func TestMissingTool(t *testing.T) {
	if _, err := exec.LookPath("netserver"); err == nil {
		t.Skip("netperf is installed")
	}
	pl := newPlace(t)
	for _, side := range []string{control.SideServer, control.SideClient} {
		c, _ := pl.dial(t)
		_, err := c.Prepare(t.Context(), byTool(t, side, "rr(tool=netperf)"))
		if kindOf(err) != external.KindMissing || !strings.Contains(err.Error(), "install it") {
			t.Errorf("%s: got %v", side, err)
		}
	}
}

// TestToolServerThatFails has servers that do not come up, or go.
func TestToolServerThatFails(t *testing.T) {
	pl := newPlace(t)
	fake(t, "iperf3", "echo iperf3: error - unable to start listener >&2; exit 1")
	c, _ := pl.dial(t)
	_, err := c.Prepare(t.Context(), byTool(t, control.SideServer, "stream(tool=iperf3)"))
	if kindOf(err) != external.KindStart || !strings.Contains(err.Error(), "unable to start listener") {
		t.Errorf("got %v", err)
	}
}

// TestCancelledTool gives up a tool that hangs, and one of its children. Nothing of them is left.
func TestCancelledTool(t *testing.T) {
	pl := newPlace(t)
	mark := filepath.Join(t.TempDir(), "pids")
	fake(t, "wrk", "sleep 1000 & echo $! $$ >"+mark+".new; mv "+mark+".new "+mark+"; wait")
	client, process := pl.dial(t)
	server, _ := pl.dial(t)
	s := byTool(t, control.SideServer, "http(tool=wrk)")
	for _, how := range []string{"cancel", "death"} {
		ready := prepare(t, server, s)
		c := byTool(t, control.SideClient, "http(tool=wrk)")
		c.Port = ready.Port
		prepare(t, client, c)
		start(t, server, client)
		pids := strings.Fields(eventually(t, func() string { b, _ := os.ReadFile(mark); return string(b) }))
		if how == "cancel" {
			if err := client.Cancel(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() string { return gone(pids) })
			if err := server.Cancel(); err != nil {
				t.Fatal(err)
			}
		} else {
			if err := process.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			// The parent's death takes the tool itself; its own children are its own to take along.
			eventually(t, func() string { return gone(pids[1:]) })
			_ = exec.Command("kill", "-9", pids[0]).Run()
		}
		os.Remove(mark)
	}
}

// gone says so when none of the processes runs any more.
func gone(pids []string) string {
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(b), ") Z ") {
			return ""
		}
	}
	return "gone"
}

// eventually waits until look returns something.
func eventually(t *testing.T, look func() string) string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		if s := look(); s != "" {
			return s
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("nothing came of it in 20 s")
		}
	}
}
