package kube

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/plan"
)

// TestReachSeveral dials each Service of several backends, rolled ones too, while all of its pods take connections, and
// gives the reason to the route whose Service does not answer and to no other.
func TestReachSeveral(t *testing.T) {
	toNodePort := plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Remote}
	toBalancer := plan.Path{From: plan.External, To: plan.LoadBalancer}
	between := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	o := Options{Paths: []plan.Path{toRemote, toNodePort, toBalancer, between}, Host: true, Backends: []int{2, 3}, Rolled: []int{3}}
	w, c := newWorld(t, o, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	dialled, answering := map[string][]string{}, map[string][]string{} // by pod
	dead := ""                                                         // what does not answer
	var mu sync.Mutex
	c.exec = func(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
		mu.Lock()
		switch argv[2] {
		case "--reach":
			dialled[pod] = append(dialled[pod], argv[5:]...)
			if slices.Contains(argv, dead) {
				defer mu.Unlock()
				_, err := fmt.Fprintf(o.Stdout, "{%q:\"i/o timeout\"}\n", dead)
				return err
			}
		case "--answer":
			answering[pod] = append(answering[pod], argv[3:]...)
		}
		mu.Unlock()
		return w.exec(ctx, pod, argv, o)
	}
	profiles := plan.Variants("cni", "cni~twin", "host")
	if silent, err := c.Reach(t.Context(), profiles); err != nil || len(silent) > 0 {
		t.Fatalf("%v, %v", silent, err)
	}
	for _, profile := range profiles {
		for _, p := range o.Paths[:3] {
			for _, r := range []plan.Route{{Variant: profile, Path: p, Servers: 2}, {Variant: profile, Path: p, Servers: 3}, {Variant: profile, Path: p, Servers: 3, Rolled: true}} {
				client, servers, err := backendsOf(c, r)
				if profile == plan.VariantOf("host") && r.Servers == 3 {
					continue // two nodes have no three addresses
				}
				if err != nil {
					t.Fatal(err)
				}
				target := fmt.Sprintf("%s:%d", servers[0].Address, servers[0].Port)
				if pod := strings.TrimPrefix(client.Name, profile.String()+"/"); !slices.Contains(dialled[pod], target) {
					t.Errorf("%+v: %s dials %v, and not %s", r, pod, dialled[pod], target)
				}
				for _, s := range servers {
					pod, port := strings.TrimPrefix(s.Name, profile.String()+"/"), fmt.Sprint(s.ListenPort)
					if !slices.Contains(answering[pod], port) {
						t.Errorf("%+v: %s takes connections at %v, and not at %s", r, pod, answering[pod], port)
					}
				}
			}
		}
	}
	_, servers, err := backendsOf(c, plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 3, Rolled: true})
	if err != nil {
		t.Fatal(err)
	}
	dead = fmt.Sprintf("%s:%d", servers[0].Address, servers[0].Port)
	silent, err := c.Reach(t.Context(), profiles)
	why := silent[plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 3, Rolled: true}]
	if err != nil || len(silent) != 1 || why == nil || !strings.Contains(why.Error(), dead) || !strings.Contains(why.Error(), "i/o timeout") {
		t.Errorf("%v, %v", silent, err)
	}
}

// TestHangUp: what takes connections ends by the end of its input, and is waited for before its stream is cut; one that does
// not end, or a kubelet that says nothing, does not hold the run up.
func TestHangUp(t *testing.T) {
	calls := []call{{servers: []string{"one", "two"}, port: 1}}
	takes := func(after time.Duration, ended *[]string) func(context.Context, string, []string, remotecommand.StreamOptions) error {
		var mu sync.Mutex
		return func(ctx context.Context, pod string, _ []string, o remotecommand.StreamOptions) error {
			_, _ = io.WriteString(o.Stdout, answering)
			_, _ = io.Copy(io.Discard, o.Stdin)
			how := "by itself"
			select {
			case <-time.After(after):
			case <-ctx.Done():
				how = "cut"
			}
			mu.Lock()
			defer mu.Unlock()
			*ended = append(*ended, how)
			return nil
		}
	}
	for name, c := range map[string]struct {
		after time.Duration
		want  string
		took  time.Duration
	}{"at once": {0, "by itself", 0}, "soon": {hangUpLimit - 1, "by itself", hangUpLimit - 1}, "never": {time.Hour, "cut", hangUpLimit}} {
		synctest.Test(t, func(t *testing.T) {
			var ended []string
			cluster := &Cluster{exec: takes(c.after, &ended)}
			hangUp, err := cluster.answerCalls(t.Context(), calls)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			hangUp()
			if !slices.Equal(ended, []string{c.want, c.want}) || time.Since(began) != c.took {
				t.Errorf("%s: ended %q after %s, want %q after %s", name, ended, time.Since(began), c.want, c.took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ string, _ []string, _ remotecommand.StreamOptions) error {
			<-ctx.Done()
			return ctx.Err()
		}
		cluster := &Cluster{exec: silent, options: Options{}.withDefaults()}
		hangUp, err := cluster.answerCalls(t.Context(), calls)
		if err == nil || !strings.Contains(err.Error(), "no word for "+helloLimit.String()) {
			t.Errorf("nothing answers: %v", err)
		}
		hangUp()
		why := cluster.dialTargets(t.Context(), "one", []string{"10.0.0.1:1"})
		if !strings.Contains(why["10.0.0.1:1"], "no answer from pod one for 1m45s") {
			t.Errorf("nothing dials: %q", why)
		}
	})
}
