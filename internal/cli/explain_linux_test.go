package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestExplainWithout explains a run on a machine that does not show everything. Each time the report names what is missing, and
// the trials have their numbers.
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
		"a busy path":         {nil, []string{"--line-rate", "20M", "--workloads", "stream"}, []string{"the path is mostly idle: "}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "explained.jsonl")
			args := append(append([]string{}, tt.under...), name, "run", "--explain", "--profiles", "ptp", "--no-twin", "--paths", "pod-to-pod/cross-node", "--workloads", "rr",
				"--repetitions", "1", "--duration", "100ms", "--warmup", "20ms", "--format", "none", "--quiet", "-o", file)
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
					t.Errorf("a trial beside: %+v", r)
				}
			}
			got := execute(t, name, "report", file)
			text := strings.Join(strings.Fields(got.stdout), " ")
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in\n%s", want, got.stdout)
				}
			}
		})
	}
}

// TestExplainEqual: two instances of one profile have nothing to explain.
func TestExplainEqual(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	got := execute(t, name, "explain", "ptp", "ptp", "--repetitions", "3", "--duration", "50ms", "--warmup", "10ms", "--quiet")
	if strings.Contains(got.stdout+got.stderr, "no right to sample") {
		t.Skip(got.stderr)
	}
	if got.code != 0 || !strings.Contains(got.stdout, "There is nothing to explain: ptp costs") {
		t.Errorf("%+v", got)
	}
}
