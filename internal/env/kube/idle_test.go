package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// kubelet answers with a new sample every second reading, 10 s later by its own clock, whatever the clock here says.
type kubelet struct {
	reads int
	// container returns the CPU time of a container in a sample, false if it is not there; nil is one ms a sample.
	container func(name string, sample int) (ns uint64, there bool)
	// stuck are containers that get no new sample.
	stuck []string
}

func (k *kubelet) read(context.Context, string) ([]byte, error) {
	n := k.reads / 2
	k.reads++
	stats := func(name string, ns uint64) string {
		at := n
		if slices.Contains(k.stuck, name) {
			at = 0
		}
		return fmt.Sprintf(`"name":%q,"cpu":{"time":"2020-01-01T00:%02d:%02dZ","usageCoreNanoSeconds":%d},"memory":{"workingSetBytes":%d}`,
			name, at/6, at%6*10, ns, 1000*(n+1))
	}
	pod := func(ns, name string, containers ...string) string {
		var all []string
		for _, c := range containers {
			spent, there := 1e6*uint64(n), true
			if k.container != nil {
				spent, there = k.container(c, n)
			}
			if there {
				all = append(all, "{"+stats(c, spent)+"}")
			}
		}
		return fmt.Sprintf(`{"podRef":{"name":%q,"namespace":%q},"containers":[%s]}`, name, ns, strings.Join(all, ","))
	}
	return fmt.Appendf(nil, `{"node":{%s,"systemContainers":[{%s},{%s},{%s}]},"pods":[%s]}`,
		stats("", 5e9*uint64(n+1)), stats("runtime", 5e9*uint64(n+1)), stats("kubelet", 2e8*uint64(n)), stats("pods", 9e9*uint64(n)),
		strings.Join([]string{
			pod("kube-flannel", "kube-flannel-ds-x7k2p", "kube-flannel"),
			pod("kube-system", "kube-proxy-abcde", "kube-proxy"),
			pod("cnibench-r", "client", "agent"),
			pod("shop", "web-1", "web"), pod("shop", "web-2", "web"),
			`{"podRef":{"name":"done","namespace":"shop"},"containers":[{"name":"ended"}]}`,
		}, ",")), nil
}

// TestRest: spans are those of the kubelet's samples, the first is one that came after the call, and a part is whole or
// absent.
func TestRest(t *testing.T) {
	all := []string{"kube-flannel/kube-flannel", "kube-system/kube-proxy", "kubelet", "other pods", "this run"}
	for name, tc := range map[string]struct {
		kubelet     kubelet
		parts, lost []string
	}{
		"all":           {parts: all},
		"a stuck one":   {kubelet: kubelet{stuck: []string{"kube-proxy"}}, parts: slices.Concat(all[:1], all[2:]), lost: all[1:2]},
		"one restarts":  {kubelet: kubelet{container: func(c string, n int) (uint64, bool) { return restarts(c, n, "kube-flannel"), true }}, parts: all[1:], lost: all[:1]},
		"one goes":      {kubelet: kubelet{container: func(c string, n int) (uint64, bool) { return uint64(n), c != "kube-flannel" || n < 2 }}, parts: all[1:], lost: all[:1]},
		"a user's goes": {kubelet: kubelet{container: func(c string, n int) (uint64, bool) { return uint64(n), c != "web" || n < 2 }}, parts: []string{all[0], all[1], all[2], all[4]}},
	} {
		t.Run(name, func(t *testing.T) {
			n := rested(t, restWatch{own: []string{"cnibench-r"}, read: tc.kubelet.read, limit: 50 * time.Millisecond}, 30*time.Millisecond)
			var parts []string
			for _, p := range n.Parts {
				parts = append(parts, p.Name)
				if p.Network != strings.HasPrefix(p.Name, "kube-") {
					t.Errorf("%s: network %v", p.Name, p.Network)
				}
			}
			if !slices.Equal(parts, tc.parts) || !slices.Equal(n.Lost, tc.lost) || len(parts)+len(n.Lost)+len(n.LostOthers) != len(all) {
				t.Errorf("parts %q, lost %q and %q", parts, n.Lost, n.LostOthers)
			}
			if span := time.Duration(n.Whole.SpanNs); n.Whole.Cores != 0.5 || span < 10*time.Second || span%(10*time.Second) != 0 {
				t.Errorf("node %+v", n.Whole)
			}
		})
	}
	n := rested(t, restWatch{read: (&kubelet{}).read, limit: time.Second}, time.Millisecond)
	i := slices.IndexFunc(n.Parts, func(p sample.RestPart) bool { return p.Name == otherPods })
	if p := n.Parts[i]; p.Cores < 2.99e-4 || p.Cores > 3.01e-4 { // three containers of 1 ms in 10 s, the agent's among them
		t.Errorf("the other pods used %v", p)
	}
}

// rested is what a watch of node n1 says of a window. The watch has a clock of its own, which a busy machine does not move.
func rested(t *testing.T, w restWatch, window time.Duration) (n sample.NodeRest) {
	t.Helper()
	w.node, w.poll = "n1", time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var err error
		if n, err = w.measure(t.Context(), window); err != nil {
			t.Fatal(err)
		}
	})
	return n
}

// restarts is the CPU time of a container whose counter begins anew after the first samples.
func restarts(c string, n int, which string) uint64 {
	if c == which && n >= 2 {
		return 1
	}
	return uint64(1000 + n)
}

// TestRestWaits: a sample that is not a window later by the kubelet's own times does not end it.
func TestRestWaits(t *testing.T) {
	slow := func(n int) []byte {
		return fmt.Appendf(nil, `{"node":{"cpu":{"time":"2020-01-01T00:00:00.%03dZ","usageCoreNanoSeconds":%d}}}`, n, n)
	}
	n := 0
	got := rested(t, restWatch{limit: time.Second, read: func(context.Context, string) ([]byte, error) { n++; return slow(n), nil }}, 5*time.Millisecond)
	if got.Whole.SpanNs != 5e6 || n < 7 {
		t.Errorf("span %d after %d readings", got.Whole.SpanNs, n)
	}
}

// TestRestFails: what a kubelet does not say, and why it was not asked.
func TestRestFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errors.New(`User "u" cannot get resource "nodes/proxy" in API group "" at the cluster scope`))
	for name, tc := range map[string]struct {
		read func(context.Context, string) ([]byte, error)
		want string
	}{
		"no sample":    {(&kubelet{stuck: []string{""}}).read, "the kubelet of node n1 took no sample within 10ms that is 0s after the one before: take a longer window"},
		"no CPU time":  {answer(`{"node":{}}`), "has no CPU time of the node"},
		"not JSON":     {answer(`<html>`), "read the kubelet's summary of node n1: invalid character"},
		"not allowed":  {func(context.Context, string) ([]byte, error) { return nil, forbidden }, "nodes/proxy"},
		"is not there": {func(context.Context, string) ([]byte, error) { return nil, errors.New("no such host") }, "node n1: no such host"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := restWatch{node: "n1", read: tc.read, poll: time.Millisecond, limit: 10 * time.Millisecond}.measure(t.Context(), time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupted"))
	if _, err := (restWatch{node: "n1", read: (&kubelet{}).read, poll: time.Hour, limit: time.Hour}).measure(ctx, time.Hour); err == nil || err.Error() != "interrupted" {
		t.Errorf("%v", err)
	}
}

func answer(text string) func(context.Context, string) ([]byte, error) {
	return func(context.Context, string) ([]byte, error) { return []byte(text), nil }
}

// TestRestRight: the right is needed for idle alone. A refusal says how to get it.
func TestRestRight(t *testing.T) {
	for _, rests := range []bool{false, true} {
		w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{acrossNodes}, Rests: rests}, nodes3()...)
		w.missing = map[string]bool{"get nodes/proxy": true}
		err := c.Preflight(t.Context())
		if rests != (err != nil) {
			t.Errorf("rests %v: %v", rests, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "get nodes/proxy") || !strings.Contains(advice.Of(err), "kube access --manifest --idle |")) {
			t.Errorf("%v\n%s", err, advice.Of(err))
		}
		if granted := strings.Contains(string(Manifest(rests)), `resources: ["nodes/proxy"]`); granted != rests || !strings.Contains(string(Manifest(rests)), "proxy") {
			t.Errorf("rests %v: %s", rests, Manifest(rests))
		}
	}
}

// TestRestEnds: the two nodes of the path are read, and the bare node is not a profile of its own at rest.
func TestRestEnds(t *testing.T) {
	_, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{acrossNodes}, Rests: true, Host: true}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := plan.Single(plan.VariantOf("cni"), acrossNodes)
	r.Rests = "idle"
	if _, err := c.Endpoints(r); err != nil {
		t.Error(err)
	}
	r.Variant = plan.VariantOf("host")
	var not *control.NotServedError
	if _, err := c.Endpoints(r); !errors.As(err, &not) {
		t.Errorf("%v", err)
	}
}
