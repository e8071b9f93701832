package kube

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/plan"
)

// onePath raises a cluster with a client and a server.
func onePath(t *testing.T) (*world, *Cluster) {
	t.Helper()
	w, c := newWorld(t, Options{Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, c
}

// TestStream talks to an agent and ends it; closing must free a Read under way and end the command.
func TestStream(t *testing.T) {
	_, c := onePath(t)
	s, err := c.startAgent(t.Context(), podServer)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(s)
	if line, err := r.ReadString('\n'); line != "hello\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := io.WriteString(s, "question\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); line != "question\n" {
		t.Fatalf("%q, %v", line, err)
	}
	freed := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		freed <- err
	}()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-freed; err == nil {
		t.Error("a Read goes on after Close")
	}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Error("a Write goes on after Close")
	}
}

// TestCloseOfTheClusterEndsItsAgents wants no agent left when the run leaves.
func TestCloseOfTheClusterEndsItsAgents(t *testing.T) {
	_, c := onePath(t)
	ended := make(chan struct{})
	c.exec = func(ctx context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
		defer close(ended)
		_, _ = io.WriteString(o.Stdout, "hello\n")
		_, err := io.Copy(io.Discard, o.Stdin)
		return err
	}
	s, err := c.startAgent(t.Context(), podServer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}

// TestLastWords has an agent die, and wants to hear why: from itself, and from the cluster.
func TestLastWords(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *Cluster)
		want   string
	}{
		"of its own accord": {func(*world, *Cluster) {}, ""},
		"evicted": {func(w *world, c *Cluster) {
			p := pod(t, w, c, podServer)
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
			update(t, w, p)
		}, "pod server on node n2: it ended: Evicted: The node was low on resource"},
		"killed for its memory": {func(w *world, c *Cluster) {
			p := pod(t, w, c, podServer)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
			update(t, w, p)
		}, "ended with code 137 (OOMKilled)"},
		"deleted": {func(w *world, c *Cluster) {
			if err := w.CoreV1().Pods(c.namespace(false)).Delete(t.Context(), podServer, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "pod server is gone: it was deleted"},
		"node not ready": {func(w *world, _ *Cluster) {
			n := node("n2", "z", unready)
			if err := w.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), &n, ""); err != nil {
				t.Fatal(err)
			}
		}, "node n2 is not ready: NodeStatusUnknown Kubelet stopped posting"},
		"pod not ready": {func(w *world, c *Cluster) {
			p := pod(t, w, c, podServer)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
			update(t, w, p)
		}, "it is not ready: ContainersNotReady"},
	} {
		w, cluster := onePath(t)
		cut := make(chan struct{})
		cluster.exec = func(_ context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
			_, _ = io.WriteString(o.Stdout, "hello\n")
			<-cut
			_, _ = io.WriteString(o.Stderr, strings.Repeat("x", tailSize)+"fatal: out of luck\n")
			return errors.New("command terminated with exit code 2")
		}
		s, err := cluster.startAgent(t.Context(), podServer)
		if err != nil {
			t.Fatal(err)
		}
		c.change(w, cluster)
		close(cut)
		said, err := io.ReadAll(s)
		if string(said) != "hello\n" || err == nil || !strings.Contains(err.Error(), "exit code 2") {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		words := s.(interface{ LastWords() string }).LastWords()
		if !strings.HasPrefix(words, "x") || !strings.Contains(words, "fatal: out of luck") || !strings.Contains(words, c.want) || len(words) > 2*tailSize {
			t.Errorf("%s: last words %q, want %q", name, strings.TrimLeft(words, "x"), c.want)
		}
		_ = s.Close()
	}
}

func pod(t *testing.T, w *world, c *Cluster, name string) *corev1.Pod {
	t.Helper()
	p, err := w.CoreV1().Pods(c.namespace(false)).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func update(t *testing.T, w *world, p *corev1.Pod) {
	t.Helper()
	if err := w.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, p.Namespace); err != nil {
		t.Fatal(err)
	}
}

// TestAgentThatDoesNotStart wants the reason as the error of its start, and no port-forward unless exec is forbidden.
func TestAgentThatDoesNotStart(t *testing.T) {
	_, c := onePath(t)
	c.exec = func(_ context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
		_, _ = io.WriteString(o.Stderr, "exec /cnibench: exec format error")
		return errors.New("command terminated with exit code 126")
	}
	_, err := c.startAgent(t.Context(), podServer)
	if err == nil || !strings.Contains(err.Error(), "exec format error") || !strings.Contains(err.Error(), "code 126") {
		t.Errorf("%v", err)
	}
	c.exec = func(context.Context, string, []string, remotecommand.StreamOptions) error { return nil }
	if _, err := c.startAgent(t.Context(), podServer); err == nil || !strings.Contains(err.Error(), "it ended at once") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.exec = func(ctx context.Context, _ string, _ []string, _ remotecommand.StreamOptions) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	if _, err := c.startAgent(ctx, podServer); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if c.usesPortForward() {
		t.Error("port-forward is tried where exec is not forbidden")
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`unable to upgrade connection: pods "client" is forbidden: User "u" cannot create resource "pods/exec"`: true,
		`unable to upgrade connection: admission webhook "no-exec" denied the request: no exec`:                 true,
		`unable to upgrade connection: container not found ("agent")`:                                           false,
		`dial tcp 10.0.0.1:6443: connect: connection refused`:                                                   false,
		`command terminated with exit code 1`:                                                                   false,
	} {
		if isExecRefused(errors.New(text)) != want {
			t.Errorf("%s: refused is %t", text, !want)
		}
	}
	if !isExecRefused(apierrors.NewForbidden(podResource, "x", errors.New("no"))) || isExecRefused(apierrors.NewNotFound(podResource, "x")) {
		t.Error("by status")
	}
}

func TestExec(t *testing.T) {
	_, c := onePath(t)
	c.exec = func(_ context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
		_, _ = io.WriteString(o.Stdout, "half")
		_, _ = io.WriteString(o.Stderr, "no right\n")
		return errors.New("exit code 1")
	}
	out, err := c.Exec(t.Context(), podClient, []string{"/cnibench", "look"})
	if string(out) != "half" || err == nil || !strings.Contains(err.Error(), "/cnibench look in pod client: exit code 1: no right") {
		t.Errorf("%q, %v", out, err)
	}
	c.exec = func(_ context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
		for range 20 {
			if _, err := o.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	}
	if out, err := c.Exec(t.Context(), podClient, []string{"x"}); len(out) != outputLimit || err == nil {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}
