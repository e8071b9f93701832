package cli

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestExplainWithout explains a run on a machine that does not show everything. Each time the report names what is missing,
// and the trials have their numbers.
func TestExplainWithout(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: without it no CPU can be sampled")
	}
	for title, tt := range map[string]struct {
		// under is the command that runs cnibench, more are flags of the run.
		under, more []string
		want        []string
	}{
		"kernel symbols": {[]string{"setpriv", "--bounding-set=-syslog"}, nil, []string{"missing are names of kernel functions, so nothing is explained"}},
		"BTF": {[]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none /sys/kernel/btf && exec "$@"`, "sh"}, nil,
			[]string{"missing are network namespaces of packets, so the switch is among the other parts"}},
		"the right to sample": {[]string{"unshare", "--user", "--map-root-user", "--net", "--mount"}, nil, []string{"no right to sample the CPU"}},
		// What is not the path's is idle, or of the tests beside this one.
		"a busy path": {nil, []string{"--line-rate", "20M", "--workloads", "stream"}, []string{"the path is mostly idle: |other tasks on its CPUs are "}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "explained.jsonl")
			args := append(append([]string{}, tt.under...), name, "run", "--explain", "--profiles", "ptp", "--no-twin", "--paths", "pod-to-pod/cross-node", "--workloads", "rr",
				"--repetitions", "1", "--duration", "400ms", "--warmup", "20ms", "--format", "none", "--quiet", "-o", file)
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skip(err)
			}
			// Code 1 says that sampled trials failed.
			if got := execute(t, args[0], append(args[1:], tt.more...)...); got.code != 0 && got.code != 1 {
				t.Fatalf("%+v", got)
			}
			c, err := result.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range c.Records {
				if r.Type == result.TypeTrial && (r.Status != result.OK || !(r.Metrics[metric.ServiceDemand] > 0)) {
					t.Errorf("a trial beside: %+v, %+v", r, r.Error)
				}
			}
			got := execute(t, name, "report", file)
			text := strings.Join(strings.Fields(got.stdout), " ")
			for _, want := range tt.want {
				if !slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool { return strings.Contains(text, one) }) {
					t.Errorf("want %q in\n%s", want, got.stdout)
				}
			}
		})
	}
}

// TestExplainEqual: two instances of one profile have nothing to explain. Of three short windows beside other tests 1 in 20
// may differ by more than the usual margin.
func TestExplainEqual(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	file := filepath.Join(t.TempDir(), "plan.yaml")
	text := "apiVersion: cnibench/v1\nkind: Plan\nprofiles: [ptp]\npaths: [pod-to-pod/cross-node]\nworkloads: [rr]\nmargin: 50%\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := execute(t, name, "explain", "ptp", "ptp", "-f", file, "--repetitions", "3", "--duration", "50ms", "--warmup", "10ms", "--quiet")
	if strings.Contains(got.stdout+got.stderr, "no right to sample") {
		t.Skip(got.stderr)
	}
	if got.code != 0 || !strings.Contains(got.stdout, "There is nothing to explain: ptp costs") {
		t.Errorf("%+v", got)
	}
}

// counting is the name of a cnibench on a machine whose processor counts: the kernel's context switches are its
// instructions, and its nanoseconds its cycles.
const counting = "counting"

func init() {
	count := func() {
		perf.Hardware = []perf.Event{
			{Name: metric.Instructions, Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
			{Name: metric.Cycles, Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK},
		}
		os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	for _, name := range []string{counting, filepath.Base(thisProgram)} { // its agents have the other name
		commands[name] = count
		if filepath.Base(os.Args[0]) == name {
			runtime.LockOSThread() // as main does
		}
	}
}

// TestExplainCounters: a transaction of two ends on one CPU is two context switches, all of them in the part that switches.
// The parts of the CPU's clock are those of time, and parts add up to what was counted.
func TestExplainCounters(t *testing.T) {
	cnibench(t) // skips where there can be no lab
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), counting)
	if err := os.Link(self, name); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "counted.jsonl")
	got := execute(t, name, "run", "--explain", "--profiles", "ptp", "--no-twin", "--paths", "pod-to-pod/cross-node", "--workloads", "rr",
		"--repetitions", "6", "--duration", "200ms", "--warmup", "50ms", "--cpu", "one", "--format", "none", "--quiet", "-o", file)
	if strings.Contains(got.stderr, "no right to sample") {
		t.Skip(got.stderr)
	}
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	type known struct{ Value, Low, High float64 }
	var r struct {
		Explained []struct {
			Profile  string
			Counters map[string]known
			Demand   known
			Parts    []struct {
				ID   string
				Time known
			}
			Counted map[string][]struct {
				ID string
				known
			}
		}
	}
	written := execute(t, name, "report", "-f", "json", file)
	if err := json.Unmarshal([]byte(written.stdout), &r); err != nil || len(r.Explained) != 2 {
		t.Fatalf("%v: %+v", err, written)
	}
	for _, side := range r.Explained {
		switches, clock := side.Counters[metric.Instructions].Value, side.Counters[metric.Cycles].Value
		if switches < 1.9 || switches > 2.5 {
			t.Errorf("%s: %g context switches in a transaction", side.Profile, switches)
		}
		for event, parts := range side.Counted {
			all, sum := side.Counters[event].Value, 0.0
			for _, n := range parts {
				sum += n.Value
			}
			if math.Abs(sum/all-1) > 1e-6 {
				t.Errorf("%s: %s of the parts are %g, and %g all", side.Profile, event, sum, all)
			}
		}
		for _, n := range side.Counted[metric.Instructions] {
			if (n.ID == "sched") != (n.Value > 0.5*switches) {
				t.Errorf("%s: %g of %g context switches are in %s", side.Profile, n.Value, switches, n.ID)
			}
		}
		for _, n := range side.Counted[metric.Cycles] {
			var of known
			for _, p := range side.Parts {
				if p.ID == n.ID {
					of = p.Time
				}
			}
			sum := side.Demand.Value
			errors := math.Hypot((n.High-n.Low)/clock, (of.High-of.Low)/sum) / 2
			if by := math.Abs(n.Value/clock - of.Value/sum); by > 0.02+2*errors {
				t.Errorf("%s: %s has %.1f %% of the clock and %.1f %% of the time", side.Profile, n.ID, 100*n.Value/clock, 100*of.Value/sum)
			}
		}
		if len(side.Counted) != 2 {
			t.Errorf("%s: parts of %d counters", side.Profile, len(side.Counted))
		}
	}
	if table := execute(t, name, "report", "--all", file).stdout; !strings.Contains(table, "instructions by part") {
		t.Errorf("no table of the parts of a counter in\n%s", table)
	}
}
