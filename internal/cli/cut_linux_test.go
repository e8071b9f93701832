package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/external/externaltest"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestPathIsCut drops every packet from some moment within a window on. A rate over the whole window would be one over
// a path and no path: the trial has failed, and has no numbers.
func TestPathIsCut(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skipf("needs iptables: %v", err)
	}
	for _, workload := range []string{"stream", "rr", "crr", "http", "stream(udp,rate=50M)"} {
		t.Run(workload, func(t *testing.T) {
			t.Parallel() // each has a lab of its own, and waits most of the time
			file := filepath.Join(t.TempDir(), "cut.jsonl")
			var story bytes.Buffer
			cmd := exec.CommandContext(t.Context(), name, "run", "--profiles", "raw", "--no-twin", "--paths", "host-to-host/cross-node",
				"--workloads", workload, "--repetitions", "1", "--duration", "6s", "--warmup", "100ms", "--format", "none", "-o", file)
			cmd.Stderr = &story
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- cmd.Wait() }()
			for deadline := time.Now().Add(30 * time.Second); lines(t, file) == 0 && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond) // the header comes just before the first trial
			}
			// Two seconds after packets begin to come it is in its window, on a busy machine too.
			const cut = `packets() { sed -n 's/^ *eth0: *[0-9]* *\([0-9]*\).*/\1/p' /proc/self/net/dev; }
				tested=$(packets); while [ $(packets) -lt $((tested + 100)) ]; do sleep 0.02; done
				sleep 2; iptables -I INPUT -j DROP`
			if got := execute(t, name, "lab", "exec", "--lab", fmt.Sprintf("run-%d", cmd.Process.Pid), "node-2", "--", "sh", "-c", cut); got.code != 0 {
				t.Fatalf("%+v", got)
			}
			select {
			case <-over:
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			c, err := result.Load(file)
			if err != nil {
				t.Fatal(err, story.String())
			}
			var trials []result.Record
			for _, r := range c.Records {
				if r.Type == result.TypeTrial {
					trials = append(trials, r)
				}
			}
			if len(trials) != 1 || trials[0].Status != result.Failed || trials[0].Metrics != nil || trials[0].Error.Kind != "stalled" || !strings.Contains(trials[0].Error.Message, "completed nothing in the last") {
				t.Errorf("%+v\n%s", trials, story.String())
			}
		})
	}
}

// TestRollInTheLab takes the backends of a Service out and puts them back, under dataplanes that learn of it in their own
// ways. No request is lost while a backend drains, and each backend gets requests again when it is back. Requests from
// outside use few ports again and again: a flow that a program has noted must not lead to a backend that is out.
func TestRollInTheLab(t *testing.T) {
	t.Parallel()
	for path, profiles := range map[string][]string{
		"pod-to-service/remote":       {"canal", "calico-nftables", "cilium-native", "calico-ebpf"},
		"external-to-nodeport/remote": {"cilium-native", "calico-ebpf"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, duration := range []string{"3s", "12s"} {
				if profiles = rollInTheLab(t, path, profiles, duration); len(profiles) == 0 {
					return
				}
			}
			t.Errorf("not one trial of %s", profiles)
		})
	}
}

// rollInTheLab returns the profiles of which there is no trial: a machine with other things to do may take longer for a
// roll than the window, and then there is no number.
func rollInTheLab(t *testing.T, path string, profiles []string, duration string) (without []string) {
	file := filepath.Join(t.TempDir(), "roll.jsonl")
	got := execute(t, cnibench(t), "run", "--profiles", strings.Join(profiles, ","), "--baseline", profiles[0], "--no-twin", "--paths", path, "--repetitions", "1", "--duration", duration,
		"--workloads", "http(backends=3,connection=close,connections=4,roll,drain=400ms),http(backends=3,connection=close,connections=4,roll)", "--format", "none", "-o", file)
	if got.code != 0 && got.code != 1 { // 1: every trial of a case failed
		t.Fatalf("%+v", got)
	}
	rolled := map[string]bool{}
	all, err := externaltest.Whole(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Type != result.TypeTrial {
			continue
		}
		if r.Status != result.OK {
			if r.Error.Kind != "roll" || r.Metrics != nil {
				t.Errorf("%s: %+v", r.Key(), r.Error)
			}
			t.Logf("%s: %s", r.Key(), r.Error.Message)
			continue
		}
		rolled[r.Profile.String()] = true
		if len(r.Server.Rolls) != 3 {
			t.Fatalf("%s: %+v", r.Key(), r.Server.Rolls)
		}
		warned := func(id string) bool {
			return slices.ContainsFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == id })
		}
		_, added := r.Metrics[metric.NetworkProgramming+".added"]
		removed, drained := r.Metrics[metric.NetworkProgramming+".removed"]
		// Nodes that learn at once may leave none to come within the drain.
		none := slices.ContainsFunc(r.Server.Rolls, func(roll sample.Roll) bool { return roll.LastNs == 0 })
		if added == warned("absent-backend") || drained != (r.Workload.Traits().Drain > 0 && !none && !warned("short-drain")) {
			t.Errorf("%s: %v, warnings %v, rolls %+v", r.Key(), r.Metrics, r.Warnings, r.Server.Rolls)
		}
		// A node that learns just before the end of the drain may have sent one more after it. From outside, on a
		// machine with other things to do, one connection of the thousands may be reset; without a drain it is several
		// for each backend.
		spoiled := 0.0
		if r.Path.From == plan.External {
			spoiled = 0.5
		}
		if drained && (removed > 400e6 || removed < 200e6 && r.Metrics[metric.FailuresPerRoll] > spoiled) {
			t.Errorf("%s: removed within %v, failures %v, errors %v", r.Key(), time.Duration(removed), r.Metrics[metric.FailuresPerRoll], r.Client.Errors)
		}
		t.Logf("%s: removed %v, failures %v", r.Key(), time.Duration(removed), r.Metrics[metric.FailuresPerRoll])
	}
	for _, p := range profiles {
		if !rolled[p] {
			without = append(without, p)
			t.Logf("%s: not one trial in %s: %s", p, duration, got.stderr)
		}
	}
	return without
}
