package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// binary builds cnibench once; the lab starts its own program again, which the test binary is not.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cnibench-test")
	if err != nil {
		return "", err
	}
	afterwards = append(afterwards, func() { _ = os.RemoveAll(dir) })
	name := filepath.Join(dir, "cnibench")
	out, err := exec.Command("go", "build", "-o", name, "github.com/cnibench/cnibench").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return name, nil
})

// cnibench returns the program under a name of the test's own, by which the test knows the processes that it has
// started.
func cnibench(t *testing.T) string {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Skipf("needs the right to make network namespaces: %v", err)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cnibench")
	if err := os.Link(built, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// said is what a command line came to.
type said struct {
	stdout, stderr string
	code           int
}

func execute(t *testing.T, name string, args ...string) said {
	t.Helper()
	var out, story bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &story
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{out.String(), story.String(), cmd.ProcessState.ExitCode()}
}

// leftovers returns the processes of this binary and the cgroups of labs of pid that are still there.
func leftovers(t *testing.T, name string, pid int) []string {
	t.Helper()
	var left []string
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, exe := range exes {
		if target, err := os.Readlink(exe); err == nil && strings.TrimSuffix(target, " (deleted)") == name {
			left = append(left, filepath.Dir(exe))
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/cnibench-%d-*", "/sys/fs/cgroup/*/cnibench-%d-*", "/sys/fs/cgroup/*/*/cnibench-%d-*"} {
		groups, err := filepath.Glob(fmt.Sprintf(pattern, pid))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, groups...)
	}
	return left
}

// wantNothing waits until nothing of a lab of pid is left; it fails if that never comes.
func wantNothing(t *testing.T, name string, pid int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := leftovers(t, name, pid)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLabUpAndExec keeps two labs standing and looks into both.
func TestLabUpAndExec(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	var pids []int
	ends := map[string]func() said{}
	for _, lab := range []string{"one", "two"} {
		var out, story bytes.Buffer
		cmd := exec.CommandContext(t.Context(), name, "lab", "up", "raw", "--name", "test-"+lab)
		cmd.Stdout, cmd.Stderr = &out, &story
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, cmd.Process.Pid)
		ends[lab] = func() said {
			_ = in.Close()
			_ = cmd.Wait()
			return said{out.String(), story.String(), cmd.ProcessState.ExitCode()}
		}
	}
	// A lab answers when it stands.
	for _, lab := range []string{"test-one", "test-two"} {
		got := execute(t, name, "lab", "exec", "--lab", lab)
		for deadline := time.Now().Add(20 * time.Second); got.code != 0 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
			got = execute(t, name, "lab", "exec", "--lab", lab)
		}
		if got.code != 0 || !strings.Contains(got.stdout, "node-2 ") || !strings.Contains(got.stdout, "172.18.0.12") {
			t.Fatalf("%s: %+v", lab, got)
		}
	}
	links := func(lab, place string) string {
		got := execute(t, name, "lab", "exec", "--lab", lab, place, "--", "cat", "/proc/self/net/dev")
		if got.code != 0 || got.stderr != "" {
			t.Fatalf("%s %s: %+v", lab, place, got)
		}
		return got.stdout
	}
	if dev := links("test-one", "node-1"); !strings.Contains(dev, "eth0:") {
		t.Errorf("node-1 has no eth0:\n%s", dev)
	}
	if dev := links("test-two", "switch"); !strings.Contains(dev, "br") {
		t.Errorf("the switch has no bridge:\n%s", dev)
	}
	if root, err := cgroup.Root(); err == nil && os.Geteuid() == 0 {
		// In the node's own cgroup, or the eBPF profiles would translate no Service for it.
		got := execute(t, name, "lab", "exec", "--lab", "test-one", "node-1", "--", "cat", "/proc/self/cgroup")
		if !strings.Contains(got.stdout, "/raw/node-1\n") {
			t.Errorf("lab exec is not in the node's cgroup under %s: %+v", root, got)
		}
	}
	if got := execute(t, name, "lab", "exec", "--lab", "test-one", "node-1", "--", "sh", "-c", "echo out; echo err >&2; exit 42"); got != (said{"out\n", "err\n", 42}) {
		t.Errorf("a command's output and exit code do not pass through: %+v", got)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"exec", "--lab", "test-one", "node-9", "--", "true"}, 2, `no host "node-9"; the hosts are switch, external, node-1`},
		{[]string{"exec", "--lab", "test-one", "node-1", "--", "no-such-program"}, 1, "hint: the lab has the programs of this machine"},
		{[]string{"exec", "--lab", "test-one", "node-1"}, 2, "node-1: which command?"},
		{[]string{"exec", "--lab", "test-three", "node-1", "--", "true"}, 2, `no lab "test-three" is up`},
		{[]string{"up", "raw", "--name", "test-one"}, 2, `lab "test-one": another lab has this name`},
		{[]string{"up", "raww"}, 2, `unknown profile "raww", did you mean "raw"?`},
		{[]string{"up"}, 2, "want one profile, and there are 0 arguments"},
	} {
		if got := execute(t, name, append([]string{"lab"}, tt.args...)...); got.code != tt.code || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%v: got %+v, want code %d and %s", tt.args, got, tt.code, tt.want)
		}
	}
	for lab, end := range ends {
		if got := end(); got.code != 0 || !strings.HasPrefix(got.stdout, "raw: ") || !strings.Contains(got.stdout, "node-2") {
			t.Errorf("lab %s ended with %+v", lab, got)
		}
	}
	for _, pid := range pids {
		wantNothing(t, name, pid)
	}
}

func TestLabTest(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	got := execute(t, name, "lab", "test", "--profiles", "raw,macvlan")
	if got.code != 0 || !strings.Contains(got.stdout, "\nok ") || strings.Contains(got.stdout, "\nFAIL") || !strings.Contains(got.stderr, " 0 failed") {
		t.Errorf("got code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	// A profile that cannot stand under these conditions is skipped by name and leaves the others alone.
	got = execute(t, name, "lab", "test", "--profiles", "raw,canal", "--service-proxy", "ipvs", "--family", "4")
	if got.code != 0 || !strings.Contains(got.stdout, "\nskip  4   canal ") || !strings.Contains(got.stdout, "\nok    4   raw ") {
		t.Errorf("got code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// TestQuietRunSaysWhyNot: why a variant was not measured stands in what -q leaves, at any width that a terminal has.
func TestQuietRunSaysWhyNot(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil {
		t.Skip("the kernel tracks no connections:", err)
	}
	most := strings.TrimSpace(string(text))
	limit, err := strconv.Atoi(most)
	if err != nil {
		t.Fatal(err)
	}
	got := execute(t, cnibench(t), "run", "-q", "--profiles", fmt.Sprintf("ptp,ptp(connections=%d)", limit+1), "--baseline", "ptp", "--no-twin",
		"--paths", "pod-to-pod/cross-node", "--workloads", "rr", "--duration", "1s", "--repetitions", "1", "-o", filepath.Join(t.TempDir(), "r.jsonl"))
	want := fmt.Sprintf("Not measured here: ptp(connections=%d) (self-test failed", limit+1)
	if said := strings.Join(strings.Fields(got.stdout), " "); !strings.Contains(said, want) || !strings.Contains(said, "more than the "+most+" that the machine tracks") {
		t.Errorf("want %q in the summary: %+v", want, got)
	}
}

// TestProofBeforeImpairment: profiles pass their self-test on perfect wires, then the wires have the delay of the run.
func TestProofBeforeImpairment(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	impaired := []string{"--delay", "500ms", "--family", "4"}
	got := execute(t, name, append([]string{"lab", "test", "canal", "--loss", "20%"}, impaired...)...)
	if got.code != 0 || !strings.Contains(got.stdout, "\nok  4   canal ") {
		t.Errorf("lab test: got code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	file := filepath.Join(t.TempDir(), "r.jsonl")
	got = execute(t, name, append([]string{"run", "--profiles", "raw", "--no-twin", "--paths", "host-to-host/cross-node", "--workloads", "ping",
		"--duration", "4s", "--repetitions", "1", "-o", file}, impaired...)...)
	if !strings.Contains(got.stderr, "(0 failed)") {
		t.Fatalf("run: %+v", got)
	}
	csv := execute(t, name, "report", "-f", "csv", file).stdout
	_, row, _ := strings.Cut(csv, "\nraw,host-to-host/cross-node,ping,rtt.min,ns,1,")
	value, _, _ := strings.Cut(row, ",")
	if rtt, err := strconv.ParseFloat(value, 64); err != nil || rtt < 0.99e9 || rtt > 1.5e9 {
		t.Errorf("a round trip took %q ns, want that of two delays of 500 ms\n%s", value, csv)
	}
}

// TestUnknownCongestionIsRefused: the workload is refused before anything is raised, and leaves no file.
func TestUnknownCongestionIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.jsonl")
	got := execute(t, cnibench(t), "run", "--profiles", "bridge", "--workloads", "rr(congestion=nope)", "-o", file)
	if got.code != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, `this kernel has no congestion control "nope": want `) {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it left a file")
	}
}

// TestKillAndResume kills a run of the real lab at random moments: nothing is left, no finished trial is lost, and a
// resumed run ends with each trial once, in its order.
func TestKillAndResume(t *testing.T) {
	t.Parallel()
	name := cnibench(t)
	file := filepath.Join(t.TempDir(), "r.jsonl")
	args := []string{"run", "--profiles", "host,macvlan", "--paths", "pod-to-pod/cross-node", "--workloads", "rr,crr",
		"--repetitions", "5", "--duration", "60ms", "--warmup", "10ms", "--seed", "9", "--format", "none", "-o", file}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for i := range kills {
		again := args
		if _, err := os.Stat(file); err == nil && lines(t, file) > 0 {
			again = append(again, "--resume")
		} else if err == nil {
			again = append(again, "--force") // it was killed before it had a header
		}
		cmd := exec.Command(name, again...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pause := time.NewTimer(time.Duration(r.Int64N(int64(2 * time.Second))))
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-pause.C:
			before := lines(t, file)
			_ = cmd.Process.Kill() // it may just have ended
			<-done
			if after := lines(t, file); after < before {
				t.Fatalf("kill %d: %d lines became %d", i, before, after)
			}
		case <-done:
		}
		wantNothing(t, name, cmd.Process.Pid)
	}
	if lines(t, file) > 0 {
		args = append(args, "--resume")
	} else {
		args = append(args, "--force")
	}
	if got := execute(t, name, args...); got.code != 0 {
		t.Fatalf("the last round: %+v", got)
	}
	c, err := result.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var want, have []plan.Trial
	for rep := 1; rep <= c.Header.Plan.Repetitions; rep++ {
		for _, k := range c.Header.Plan.Order(rep) {
			want = append(want, plan.Trial{Case: k, Repetition: rep})
		}
	}
	for _, rec := range c.Records {
		if rec.Type == result.TypeTrial {
			have = append(have, rec.Trial)
		}
	}
	if d := cmp.Diff(want, have, cmpopts.EquateComparable(plan.Variant{})); d != "" {
		t.Error(d)
	}
	got := execute(t, name, "report", "-f", "json", file)
	var doc struct {
		Cells       []json.RawMessage `json:"cells"`
		Comparisons []json.RawMessage `json:"comparisons"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || len(doc.Cells) == 0 || len(doc.Comparisons) == 0 {
		t.Errorf("the report has %d cells and %d comparisons: %v", len(doc.Cells), len(doc.Comparisons), err)
	}
}

// lines counts the whole lines of a file, 0 if there is none.
func lines(t *testing.T, file string) int {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}
