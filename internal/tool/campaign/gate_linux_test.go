package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program stands in for cnibench: it ends with the code in the file code, and says what a run would.
const program = `#!/bin/sh
here=$(dirname "$0")
code=$(cat "$here/code")
while [ $# -gt 0 ]; do [ "$1" = -o ] && result=$2; shift; done
[ -z "${result:-}" ] || echo "{}" > "$result"
case $code in
0) echo "### cnibench: within budget" ;;
3) echo "### cnibench: a budget is broken" ;;
4) echo "### cnibench: undecided" ;;
*) echo "cnibench: change.yaml:7: no such plugin" >&2; exit $code ;;
esac
[ -z "${result:-}" ] || exit $code
`

// tried runs the action with a program that ends with a code.
func tried(t *testing.T, code int, change func(*job)) (*job, outcome, string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j, err := newJob(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	j.log = &log
	write(t, filepath.Join(dir, "cnibench"), program)
	write(t, filepath.Join(dir, "code"), fmt.Sprint(code))
	write(t, filepath.Join(j.bin, "sudo"), sudo)
	j.inputs = map[string]string{"base": "base.yaml", "change": "change.yaml", "cnibench": filepath.Join(dir, "cnibench")}
	if change != nil {
		change(j)
	}
	o, err := j.runs(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return j, o, log.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestVerdicts: every exit code of the measurement becomes a verdict, a comment and the end of the job.
func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		code             int
		verdict, comment string
		before           string // a comment of an earlier run
	}{
		{0, "kept", "", ""},
		{0, "kept", "within budget", "a budget was broken"},
		{3, "broken", "a budget is broken", ""},
		{4, "undecided", "undecided", ""},
		{1, "failed", "exit code 1", ""},
		{2, "failed", "change.yaml:7: no such plugin", ""},
	} {
		j, o, log := tried(t, tt.code, func(j *job) {
			if tt.before != "" {
				write(t, j.comments(), tt.before)
			}
		})
		if o.outputs["verdict"] != tt.verdict || o.failed != (tt.code != 0) {
			t.Errorf("%d: %v, failed %v\n%s", tt.code, o.outputs, o.failed, log)
		}
		if c := j.comment(); (c == "") != (tt.comment == "") || !strings.Contains(c, tt.comment) {
			t.Errorf("%d: comment %q", tt.code, c)
		}
		if !strings.Contains(o.summary, "cnibench: ") {
			t.Errorf("%d: summary %q", tt.code, o.summary)
		}
	}
}

// TestFork: a token that may not write fails no step, and the job ends as it would.
func TestFork(t *testing.T) {
	for code, failed := range map[int]bool{0: false, 3: true} {
		j, o, log := tried(t, code, func(j *job) { j.env = append(j.env, "READ_ONLY=yes") })
		if j.comment() != "" || o.failed != failed {
			t.Errorf("%d: comment %q, failed %v", code, j.comment(), o.failed)
		}
		if said := strings.Contains(log, "the token may not write to pull requests"); said != failed {
			t.Errorf("%d: %s", code, log)
		}
	}
}

// TestRelease: a job takes the program of a release whose checksum is right. Without one it fails and says why.
func TestRelease(t *testing.T) {
	name := "cnibench_1.2.3_linux_" + map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine(t)] + ".tar.gz"
	for _, tt := range []struct{ version, sum, verdict, says string }{
		{"v1.2.3", "", "kept", "within budget"},
		{"v1.2.3", strings.Repeat("0", 64), "failed", "computed checksum did NOT match"},
		{"v9.9.9", "", "failed", "cannot get release v9.9.9"},
		{"", "", "failed", "release not found"},
	} {
		j, o, log := tried(t, 0, func(j *job) {
			release := filepath.Join(filepath.Dir(j.temp), "releases", "v1.2.3")
			tar := exec.Command("tar", "czf", filepath.Join(release, name), "cnibench", "code")
			tar.Dir = filepath.Dir(j.temp)
			write(t, filepath.Join(release, "checksums.txt"), "")
			if out, err := tar.CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			b, err := os.ReadFile(filepath.Join(release, name))
			if err != nil {
				t.Fatal(err)
			}
			sum := tt.sum
			if sum == "" {
				sum = fmt.Sprintf("%x", sha256.Sum256(b))
			}
			write(t, filepath.Join(release, "checksums.txt"), sum+"  "+name+"\n")
			j.inputs["cnibench"], j.inputs["version"] = "", tt.version
		})
		if o.outputs["verdict"] != tt.verdict || !strings.Contains(o.summary, tt.says) {
			t.Errorf("%q: %v %q\n%s", tt.version, o.outputs, o.summary, log)
		}
		if tt.verdict == "failed" && !strings.Contains(j.comment(), "no verdict") {
			t.Errorf("%q: comment %q", tt.version, j.comment())
		}
	}
}

func machine(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("uname", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestTrend: a run outside a pull request adds its result to a branch, and makes a page of all.
func TestTrend(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	remote := filepath.Join(t.TempDir(), "remote.git")
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "--quiet", "--bare", remote)
	for run := 1; run <= 3; run++ {
		_, o, log := tried(t, 0, func(j *job) {
			j.github["event_name"], j.inputs["history"] = "push", "results"
			git("init", "--quiet", j.dir)
			git("-C", j.dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", fmt.Sprint("change ", run))
			git("-C", j.dir, "remote", "add", "origin", remote)
		})
		if o.failed {
			t.Fatal(log)
		}
		files := strings.Fields(git("-C", remote, "ls-tree", "-r", "--name-only", "results"))
		if len(files) != run+1 || files[0] != "index.html" {
			t.Fatalf("run %d: %v", run, files)
		}
	}
}

func TestExpressions(t *testing.T) {
	vars := map[string]string{"inputs.a": "x", "steps.b.outputs.c": "3"}
	for text, want := range map[string]string{
		"${{ inputs.a }}":                       "x",
		"exit ${{ steps.b.outputs.code || 1 }}": "exit 1",
		"${{ steps.b.outputs.c || 1 }}":         "3",
		"${{ inputs.a == 'x' }}":                "true",
		"${{ inputs.a != 'x' && always() }}":    "",
	} {
		if got := fill(text, vars); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if wanted("", nil, true) || !wanted("always() && inputs.a == 'x'", vars, true) || wanted("inputs.a == ''", vars, false) {
		t.Error("conditions")
	}
}

// TestRowOf: a campaign of one scenario keeps the rows of the others.
func TestRowOf(t *testing.T) {
	table := "\n| base and change | verdict |\n|---|---|\n| two equal files | kept |\n| two equal files beside bursts | undecided |\n\n"
	for about, want := range map[string]string{
		"two equal files": "| two equal files | kept |\n", "two equal files beside bursts": "| two equal files beside bursts | undecided |\n", "equal": "",
	} {
		if got := rowOf(table, about); got != want {
			t.Errorf("the row about %s is %q, want %q", about, got, want)
		}
	}
}
