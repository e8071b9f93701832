//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// binary is the program under test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(cmp.Or(os.Getenv("CNIBENCH_BINARY"), "../bin/cnibench"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("CNIBENCH_BINARY, or make build: %v", err)
	}
	return path
}

// process is a running invocation of the program.
type process struct {
	*exec.Cmd
	// file is the result file of a run.
	file string
	mu   sync.Mutex
	out  bytes.Buffer
	err  bytes.Buffer
	over chan struct{}
	took time.Duration
}

// locked is a writer that may be read while it is written to.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// start begins cnibench with args, as a user would on the cluster under test.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary(t), args...), over: make(chan struct{})}
	p.Stdout, p.Stderr = locked{&p.mu, &p.out}, locked{&p.mu, &p.err}
	p.Dir = t.TempDir()
	began := time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // code says how it ended
		p.took = time.Since(began)
		close(p.over)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.over
	})
	return p
}

// startRun begins a run with args into a new file: short windows, one path.
func startRun(t *testing.T, args ...string) *process {
	t.Helper()
	return startInto(t, filepath.Join(t.TempDir(), "result.jsonl"), args...)
}

// onePath is what a run of these tests measures where it does not matter what.
var onePath = []string{"--paths", "pod-to-pod/cross-node", "--workloads", "rr", "--duration", "200ms", "--warmup", "10ms"}

func startInto(t *testing.T, file string, args ...string) *process {
	t.Helper()
	// With the request a compile job beside the cluster does not keep pods from their CPU for longer than a window.
	base := []string{"run", "--env", "kubernetes", "--verbose", "--format", "none", "--image", options(t).Image, "--cpu-request", "100m", "-o", file}
	p := start(t, append(base, args...)...)
	p.file = file
	return p
}

// stderr is what the user sees besides the product.
func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

// noise are lines of libraries that no user is to see: klog's, and those of a panic.
var noise = regexp.MustCompile(`(?m)^([IWEF]\d{4} |goroutine |panic:).*$`)

// end waits for the end and returns the exit code and what was said.
func (p *process) end(t *testing.T, limit time.Duration) (code int, said string) {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(limit):
		_ = p.Process.Signal(syscall.SIGQUIT)
		<-p.over
		t.Fatalf("it had not ended after %s:\n%s", limit, p.stderr())
	}
	said = p.stderr()
	t.Logf("exit code %d after %s:\n%s", p.ProcessState.ExitCode(), p.took.Round(100*time.Millisecond), story(said))
	if line := noise.FindString(said); line != "" {
		t.Errorf("a library writes to the user: %s", line)
	}
	return p.ProcessState.ExitCode(), said
}

// story is what was said without the lines of trials that went well.
func story(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if !regexp.MustCompile(`^\d+/\d+ .*  [\d.]+m?s\n$`).MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// wantEnd waits for the end and wants the exit code and every one of words.
func (p *process) wantEnd(t *testing.T, limit time.Duration, want int, words ...string) string {
	t.Helper()
	code, said := p.end(t, limit)
	if code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("%q is not said", w)
		}
	}
	return said
}

var runName = regexp.MustCompile(`in namespace cnibench-([a-z0-9]{8})`)

// run waits for the id of the run that the process makes pods for.
func (p *process) run(t *testing.T) string {
	t.Helper()
	waitFor(t, time.Minute, func() (bool, string) { return runName.MatchString(p.stderr()), p.stderr() })
	return runName.FindStringSubmatch(p.stderr())[1]
}

// contents are what is in the result file.
func (p *process) contents(t *testing.T) result.Contents {
	t.Helper()
	c, err := result.Load(p.file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitTrials waits until so many trials are in the file.
func (p *process) awaitTrials(t *testing.T, n int) {
	t.Helper()
	waitFor(t, 2*time.Minute, func() (bool, string) {
		select {
		case <-p.over:
			t.Fatalf("it ended first:\n%s", p.stderr())
		default:
		}
		text, err := os.ReadFile(p.file)
		return err == nil && bytes.Count(text, []byte{'\n'}) > n, p.stderr()
	})
}

// trials returns those of the file by their status. What failed must say why, and have no numbers.
func (p *process) trials(t *testing.T) (finished, failed []result.Record) {
	t.Helper()
	for _, r := range p.contents(t).Records {
		switch {
		case r.Type != result.TypeTrial:
		case r.Status == result.OK:
			finished = append(finished, r)
		default:
			failed = append(failed, r)
			t.Logf("failed: %s #%d: %s %s: %s", r.Key(), r.Repetition, r.Error.Side, r.Error.Kind, r.Error.Message)
			if r.Error.Kind == "" || r.Error.Message == "" || len(r.Metrics) > 0 || r.Client != nil || r.Server != nil {
				t.Errorf("a broken trial has numbers or no reason: %+v", r)
			}
		}
	}
	return finished, failed
}

// admin is a connection to the cluster under test with all rights.
func admin(t *testing.T) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(options(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leftOf returns the namespaces of a run, "" for all runs.
func leftOf(t *testing.T, run string) []string {
	t.Helper()
	label := kube.LabelManagedBy + "=" + kube.ManagedBy
	if run != "" {
		label += "," + kube.LabelRun + "=" + run
	}
	list, err := clientset(admin(t)).CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
	}
	return names
}

// wantNothingLeft wants every namespace gone of which the process spoke.
func (p *process) wantNothingLeft(t *testing.T) {
	t.Helper()
	for _, m := range runName.FindAllStringSubmatch(p.stderr(), -1) {
		if left := leftOf(t, m[1]); len(left) > 0 {
			t.Errorf("left in the cluster: %v", left)
		}
	}
}

// wantUnmade wants that no pod was made, and no file left.
func (p *process) wantUnmade(t *testing.T) {
	t.Helper()
	if strings.Contains(p.stderr(), "in namespace") {
		t.Error("it made pods")
	}
	if _, err := os.Stat(p.file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left a result file: %v", err)
	}
}

// TestCLIKubeconfig is about the ways in which the way to the cluster can be wrong: nothing is made, the exit code is 2.
func TestCLIKubeconfig(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	users := func(token string) string {
		return rewrite(t, func(c *clientcmdapi.Config) {
			for _, u := range c.AuthInfos {
				*u = clientcmdapi.AuthInfo{Token: token}
			}
		})
	}
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"missing", []string{"--kubeconfig", "/nonexistent/kubeconfig"}, []string{"/nonexistent/kubeconfig", "hint: name the file"}},
		{"garbage", []string{"--kubeconfig", write("{{ no yaml")}, []string{"kubeconfig", "hint: "}},
		{"empty", []string{"--kubeconfig", write("")}, []string{"no kubeconfig", "hint: name one by --kubeconfig"}},
		{"unknown context", []string{"--context", "nowhere"}, []string{`context "nowhere" does not exist`, "hint: kubectl config get-contexts"}},
		{"unknown token", []string{"--kubeconfig", users("nonsense")}, []string{"does not accept the credentials", "hint: log in again"}},
		{"expired token", []string{"--kubeconfig", users(part(`{"alg":"RS256"}`) + "." + part(`{"exp":1700000000}`) + ".c2ln")},
			[]string{"does not accept the credentials", "the token expired on 2023-11-14", "hint: log in again"}},
		{"nobody there", []string{"--kubeconfig", rewrite(t, func(c *clientcmdapi.Config) {
			for _, one := range c.Clusters {
				one.Server = "https://127.0.0.1:1"
			}
		})}, []string{"127.0.0.1:1", "connection refused", "hint: check the server's address"}},
		{"unknown authority", []string{"--kubeconfig", rewrite(t, func(c *clientcmdapi.Config) {
			for _, one := range c.Clusters {
				one.CertificateAuthority, one.CertificateAuthorityData = "", nil
			}
		})}, []string{"authority", "hint: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startRun(t, append(onePath, tt.args...)...)
			p.wantEnd(t, 30*time.Second, 2, tt.words...)
			p.wantUnmade(t)
		})
	}
}

// TestCLIOneRightLess wants the verb that is missing named before anything is made.
func TestCLIOneRightLess(t *testing.T) {
	for i, r := range needed() {
		if r.Verb != "create" || r.Resource != "pods" && r.Resource != "services" {
			continue // TestOneRightLess goes through all of them
		}
		rights := needed()
		p := startRun(t, append(onePath, "--kubeconfig", account(t, append(rights[:i:i], rights[i+1:]...)))...)
		p.wantEnd(t, 30*time.Second, 1, r.String(), "hint: ")
		p.wantUnmade(t)
	}
}

func TestCLIImageThatCannotBePulled(t *testing.T) {
	p := startRun(t, append(onePath, "--image", "127.0.0.1:1/cnibench:none")...)
	p.wantEnd(t, 2*time.Minute, 1, "its image 127.0.0.1:1/cnibench:none cannot be pulled", "hint: cnibench image --load or --push")
	p.wantNothingLeft(t)
}

// TestCLIOneNode leaves one node to choose from: what needs a second is not served, and the rest is measured.
func TestCLIOneNode(t *testing.T) {
	nodes, err := clientset(admin(t)).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	only := []string{"--node-selector", corev1.LabelHostname + "=" + nodes.Items[0].Labels[corev1.LabelHostname]}
	p := startRun(t, append(only, "--paths", "pod-to-pod/same-node,pod-to-pod/cross-node", "--workloads", "rr", "--duration", "200ms", "--repetitions", "2")...)
	p.wantEnd(t, 2*time.Minute, 0)
	finished, failed := p.trials(t)
	if len(finished) == 0 || len(failed) > 0 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	for _, r := range finished {
		if r.Path.String() != "pod-to-pod/same-node" {
			t.Errorf("measured without a second node: %s", r.Key())
		}
	}
	for _, q := range p.contents(t).Header.Profiles {
		if why := q.NotServed["pod-to-pod/cross-node"]; !strings.Contains(why, "one node alone can take pods") {
			t.Errorf("%s does not say why: %q", q.Name, why)
		}
	}
	p.wantNothingLeft(t)
	p = startRun(t, append(only, onePath...)...)
	p.wantEnd(t, time.Minute, 2, "one node alone can take pods")
	p.wantNothingLeft(t)
}

// TestCLIInterrupted interrupts a run once, and goes on with it.
func TestCLIInterrupted(t *testing.T) {
	p := startRun(t, append(onePath, "--repetitions", "8")...)
	p.awaitTrials(t, 4)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, time.Minute, 130, "interrupted; what was measured is in "+p.file, "hint: continue with: cnibench run --resume -o "+p.file)
	p.wantNothingLeft(t)
	before, failed := p.trials(t)
	if len(before) < 4 || len(failed) > 0 {
		t.Errorf("%d trials are kept, %d failed", len(before), len(failed))
	}
	p = start(t, "run", "--resume", "--verbose", "--format", "none", "-o", p.file)
	p.file = p.Args[len(p.Args)-1]
	p.wantEnd(t, 2*time.Minute, 0, "trials (0 failed)")
	p.wantNothingLeft(t)
	after, failed := p.trials(t)
	if len(after) != 8*3 || len(failed) > 0 {
		t.Errorf("%d trials after all, %d failed", len(after), len(failed))
	}
}

var remedy = regexp.MustCompile(`remove it: cnibench (kube clean --run .*)`)

// TestCLIInterruptedTwice ends a run at once: it says what stays, and how to remove it.
func TestCLIInterruptedTwice(t *testing.T) {
	p := startRun(t, append(onePath, "--repetitions", "1000")...)
	p.awaitTrials(t, 2)
	for range 2 {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // two signals at once are one
	}
	said := p.wantEnd(t, 5*time.Second, 130, "is still in the cluster; remove it: cnibench kube clean --run "+p.run(t))
	how := remedy.FindStringSubmatch(said)
	if how == nil {
		t.Fatal("no remedy")
	}
	q := start(t, strings.Fields(how[1])...)
	q.wantEnd(t, time.Minute, 0)
	p.wantNothingLeft(t)
}

// TestCLIKilled leaves clean what a killed run could not remove, and what is under way to its run.
func TestCLIKilled(t *testing.T) {
	p := startRun(t, append(onePath, "--repetitions", "1000", "--ttl", "1h")...)
	p.awaitTrials(t, 2)
	run := p.run(t)
	q := start(t, "kube", "clean")
	q.wantEnd(t, time.Minute, 0, "; --all removes them too")
	if out := q.out.String(); !strings.Contains(out, "cnibench-"+run+"\tkept: its run may last until ") || len(leftOf(t, run)) == 0 {
		t.Errorf("what is under way is not kept:\n%s", out)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.over
	word := tokenOf(t, run)
	q = start(t, "kube", "clean", "--run", run, "--dry-run")
	q.wantEnd(t, time.Minute, 0)
	if out := q.out.String(); !strings.Contains(out, "cnibench-"+run+"\twould be removed") || len(leftOf(t, run)) == 0 {
		t.Errorf("the dry run:\n%s", out)
	}
	waitFor(t, 30*time.Second, func() (bool, string) { left := agents(t, word); return len(left) == 0, fmt.Sprint("agents ", left) })
	q = start(t, "kube", "clean", "--run", run)
	q.wantEnd(t, time.Minute, 0)
	if left := leftOf(t, run); len(left) > 0 || !strings.Contains(q.out.String(), "cnibench-"+run+"\tremoved") {
		t.Errorf("left: %v\n%s", left, q.out.String())
	}
	if finished, _ := p.trials(t); len(finished) < 2 {
		t.Errorf("%d trials are kept", len(finished))
	}
}

// tokenOf returns what every process of a run's pods has in its environment.
func tokenOf(t *testing.T, run string) string {
	t.Helper()
	list, err := clientset(admin(t)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelRun + "=" + run})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("no pods of run %s: %v", run, err)
	}
	return list.Items[0].Spec.Containers[0].Env[0].Value
}
