package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/position"
)

// pretended is a place of scripted agents that keeps a diary of what is asked of it.
type pretended struct {
	pretence
	name  string
	facts facts.Facts
	// skipped is why its profiles cannot be raised.
	skipped string
	// broken is what asking for its facts comes to, closing what closing it does.
	broken, closing error
	diary           *[]string
}

func (e pretended) Profiles(ctx context.Context) ([]result.Profile, error) {
	all, err := e.pretence.Profiles(ctx)
	for i := range all {
		all[i].Skipped = e.skipped
	}
	return all, err
}

func (e pretended) Facts(context.Context) (facts.Facts, error) { return e.facts, e.broken }

func (e pretended) Conditions() outcome.Conditions {
	return outcome.Conditions{CPUs: []int{len(e.name)}}
}

func (e pretended) Close(context.Context) error {
	*e.diary = append(*e.diary, e.name+" closed")
	return e.closing
}

func (e pretended) At(plan.Variant) env.Site { return e }

func (e pretended) Endpoints(ctx context.Context, r plan.Route) (control.Ends, error) {
	*e.diary = append(*e.diary, e.name+" measures "+r.Variant.String())
	return e.pretence.Endpoints(ctx, r)
}

// stage is both places as a test has them, with what they are to find and where they are to fail.
type stage struct {
	// found is what runs on each context.
	found map[string]string
	// fault is the step that fails: "clusters", "groups", "lab", "facts", or "close" for all that is taken down.
	fault string
	// tree is that of the CPU groups.
	tree string

	diary []string
	// skipped is why the lab cannot raise its profiles, "" if it can. proxy is the mode of kube-proxy on the clusters.
	skipped string
	proxy   condition.ProxyMode
	// here and there are the plans that the places were raised by, agent the tree of the lab's agents.
	here, there plan.Plan
	agent       string
}

func (s *stage) fails(step string) error {
	if s.fault == step {
		return errors.New(step + " fails")
	}
	return nil
}

// closing is the fault of what is taken down.
func (s *stage) closing(what string) error {
	if s.fault == "close" {
		return errors.New(what + " stays")
	}
	return nil
}

func (s *stage) note(format string, args ...any) {
	s.diary = append(s.diary, fmt.Sprintf(format, args...))
}

func (s *stage) parts() env.Parts {
	return env.Parts{
		Clusters: func(ctx context.Context, want plan.Plan, beside func(context.Context, plan.Plan) error) (env.Environment, plan.Plan, error) {
			s.there = want
			if err := s.fails("detection"); err != nil {
				return nil, want, err
			}
			want = want.Resolve(s.found)
			want.Lab.ServiceProxy = cmp.Or(s.proxy, want.Lab.ServiceProxy)
			if err := beside(ctx, want); err != nil {
				return nil, want, err
			}
			if err := s.fails("clusters"); err != nil {
				return nil, want, err
			}
			s.note("clusters raised")
			return pretended{pretence: pretence{want}, name: "clusters", facts: facts.Facts{facts.Kernel: "6.0", facts.KubeCNI: "some"}, closing: s.closing("clusters"), diary: &s.diary}, want, nil
		},
		Groups: func(context.Context) (string, func() error, error) {
			if err := s.fails("groups"); err != nil {
				return "", nil, err
			}
			s.note("groups made")
			return s.tree, func() error { s.note("groups removed"); return s.closing("groups") }, nil
		},
		Lab: func(_ context.Context, want plan.Plan, tree string) (env.Environment, error) {
			s.here, s.agent = want, tree
			if err := s.fails("lab"); err != nil {
				return nil, err
			}
			s.note("lab raised")
			return pretended{pretence: pretence{want}, name: "lab", skipped: s.skipped, facts: facts.Facts{facts.Kernel: "6.12"}, broken: s.fails("facts"), closing: s.closing("lab"), diary: &s.diary}, nil
		},
	}
}

// fidelityPlan is what cnibench fidelity --context a,b is to measure.
func fidelityPlan(contexts ...string) plan.Plan {
	p := plan.Default()
	p.Environment, p.Profiles, p.Cluster.Contexts = plan.EnvKubernetes, plan.Variants(plan.Detected), contexts
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.RR{}}.Normalize()}
	p.Repetitions, p.MaxRepetitions, p.Precision, p.Seed = 6, 6, 0, 7
	p.Duration, p.Warmup = 10*time.Millisecond, 0
	return p
}

// TestBothPlans: the clusters are asked for what runs there beside their bare nodes, the lab raises each of these
// profiles once, and the plan of both has every name once.
func TestBothPlans(t *testing.T) {
	for _, tt := range []struct {
		contexts    []string
		found       map[string]string
		there, here []plan.Variant
		both        []plan.Variant
	}{
		{
			contexts: []string{"a"}, found: map[string]string{"a": "canal"},
			there: plan.Variants("detected@a", "host@a", "host@a~twin"), here: plan.Variants("canal"),
			both: plan.Variants("canal", "canal@a", "host@a", "host@a~twin"),
		},
		{
			contexts: []string{"a", "b", "c"}, found: map[string]string{"a": "flannel-vxlan", "b": "flannel-host-gw", "c": "flannel-vxlan"},
			there: plan.Variants("detected@a", "host@a", "host@a~twin", "detected@b", "host@b", "host@b~twin", "detected@c", "host@c", "host@c~twin"),
			here:  plan.Variants("flannel-vxlan", "flannel-host-gw"),
			both: []plan.Variant{plan.VariantOf("flannel-vxlan"), plan.VariantOf("flannel-host-gw"), plan.VariantOf("flannel-vxlan@a"), plan.VariantOf("host@a"), plan.VariantOf("host@a~twin"), plan.VariantOf("flannel-host-gw@b"), plan.VariantOf("host@b"), plan.VariantOf("host@b~twin"),
				plan.VariantOf("flannel-vxlan@c"), plan.VariantOf("host@c"), plan.VariantOf("host@c~twin")},
		},
	} {
		s := &stage{found: tt.found, tree: "/groups", proxy: condition.ProxyNftables}
		want := fidelityPlan(tt.contexts...)
		_, both, err := env.Combine(t.Context(), want, s.parts())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.there.Profiles, tt.there) || s.there.Baseline != plan.VariantOf("host@a") || s.there.Twin || !slices.Equal(s.there.Cluster.Contexts, tt.contexts) {
			t.Errorf("there: %q, baseline %s, twin %v", s.there.Profiles, s.there.Baseline, s.there.Twin)
		}
		if !slices.Equal(s.here.Profiles, tt.here) || s.here.Baseline != plan.VariantOf("host") || !s.here.Twin || s.here.Environment != plan.EnvLab || len(s.here.Cluster.Contexts) > 0 || s.here.Lab.ServiceProxy != condition.ProxyNftables {
			t.Errorf("here: %q, baseline %s, twin %v in %s", s.here.Profiles, s.here.Baseline, s.here.Twin, s.here.Environment)
		}
		if !slices.Equal(both.Profiles, tt.both) || both.Baseline != plan.VariantOf("host") || !both.Twin || both.Environment != plan.EnvKubernetes || both.Seed != want.Seed {
			t.Errorf("both: %q, baseline %s, twin %v in %s", both.Profiles, both.Baseline, both.Twin, both.Environment)
		}
		if s.agent != "/groups" {
			t.Errorf("agents are in %q", s.agent)
		}
		if !slices.Equal(want.Profiles, plan.Variants(plan.Detected)) {
			t.Errorf("the plan that was given became %q", want.Profiles)
		}
	}
}

// TestBothFaults: the lab is raised before anything is made in a cluster. Whatever fails, what was raised is removed, and
// the faults of that are reported too.
func TestBothFaults(t *testing.T) {
	for _, tt := range []struct {
		fault, found string
		diary        []string
		words        string
		code         int
	}{
		{"detection", "canal", nil, "detection fails", exitFailed},
		{"", "no-such-cni", nil, `unknown profile "no-such-cni"`, exitUsage},
		{"groups", "canal", nil, "groups fails", exitFailed},
		{"lab", "canal", []string{"groups made", "groups removed"}, "lab fails", exitFailed},
		{"skipped", "canal", []string{"groups made", "lab raised", "lab closed", "groups removed"}, "the lab of this machine cannot raise what the clusters run: host: no vxlan; host~twin: no vxlan; canal: no vxlan", exitUsage},
		{"clusters", "canal", []string{"groups made", "lab raised", "lab closed", "groups removed"}, "clusters fails", exitFailed},
		{"facts", "canal", []string{"groups made", "lab raised", "clusters raised", "lab closed", "groups removed", "clusters closed"}, "facts fails", exitFailed},
		{"close", "canal", []string{"groups made", "lab raised", "clusters raised", "lab closed", "groups removed", "clusters closed"}, "clusters stays", exitFailed},
	} {
		s := &stage{found: map[string]string{"a": tt.found}, fault: tt.fault}
		if tt.fault == "skipped" {
			s.skipped = "no vxlan"
		}
		out := create(t)
		_, err := measureBoth(t.Context(), fidelityPlan("a"), s.parts(), out, run.Options{})
		if err == nil || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", tt.words, err)
		}
		code := exitFailed
		if faults := (position.Faults{}); errors.As(err, &faults) || cannotCompare(err) {
			code = exitUsage
		}
		s.diary = slices.DeleteFunc(s.diary, func(line string) bool { return strings.Contains(line, " measures ") })
		if !slices.Equal(s.diary, tt.diary) || code != tt.code {
			t.Errorf("%s: exit code %d after %q", tt.words, code, s.diary)
		}
	}
}

// TestBothInterrupted: that somebody gave up is the reason, and not what it made of a request that was under way.
func TestBothInterrupted(t *testing.T) {
	s := &stage{found: map[string]string{"a": "canal"}, fault: "lab"}
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	stop(enough)
	_, err := measureBoth(ctx, fidelityPlan("a"), s.parts(), create(t), run.Options{})
	if !errors.Is(err, enough) || strings.Contains(err.Error(), "lab fails") || s.diary[len(s.diary)-1] != "groups removed" {
		t.Errorf("%v after %q", err, s.diary)
	}
}

// measureBoth measures a plan in both environments as fidelity does.
func measureBoth(ctx context.Context, want plan.Plan, parts env.Parts, out *result.Writer, o run.Options) (result.End, error) {
	open := func(ctx context.Context, _ func(string, ...any)) (env.Environment, plan.Plan, error) {
		return env.Combine(ctx, want, parts)
	}
	return (&program{}).measurePlan(ctx, open, out, o, &story{quiet: true})
}

func create(t *testing.T) *result.Writer {
	t.Helper()
	out, err := result.Create(filepath.Join(t.TempDir(), "r.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() }) // a test that reads it has closed it
	return out
}

// TestFidelity measures both places by scripted agents, and prints the page of what came of it.
func TestFidelity(t *testing.T) {
	s := &stage{found: map[string]string{"a": "canal"}, tree: "/groups"}
	name := filepath.Join(t.TempDir(), "r.jsonl")
	out, err := result.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	end, err := measureBoth(t.Context(), fidelityPlan("a"), s.parts(), out, run.Options{})
	if err != nil || end.Reason != result.Complete {
		t.Fatalf("%s: %v", end.Reason, err)
	}
	if want := []string{"lab closed", "groups removed", "clusters closed"}; !slices.Equal(s.diary[len(s.diary)-3:], want) {
		t.Errorf("at the end %q, want %q", s.diary[len(s.diary)-3:], want)
	}
	c, err := result.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, r := range c.Records {
		if r.Status == result.OK {
			measured[r.Profile.String()]++
		}
	}
	for _, profile := range []string{"host", "host~twin", "canal", "host@a", "host@a~twin", "canal@a"} {
		if measured[profile] != 6 {
			t.Errorf("%s: %d trials", profile, measured[profile])
		}
		place := "lab"
		if strings.Contains(profile, "@") {
			place = "clusters"
		}
		if !slices.Contains(s.diary, place+" measures "+string(profile)) {
			t.Errorf("%s was not measured in the %s", profile, place)
		}
	}
	if len(measured) != 6 {
		t.Errorf("measured %v", measured)
	}
	if f := c.Header.Facts; f[facts.Kernel] != "6.12" || f[facts.KubeCNI] != "some" || f["lab.agent"] != "under seccomp, in CPU groups as deep as a pod's" {
		t.Errorf("facts %v", f)
	}
	var page bytes.Buffer
	if err := (&assessment{program: &program{stdout: &page}, format: "markdown"}).assessFile(name); err != nil {
		t.Fatal(err)
	}
	// The script knows canal by its name in the lab alone, so the cluster's is faster, which the page has to show.
	if text := page.String(); !strings.Contains(text, "canal") || !strings.Contains(text, "differs") {
		t.Errorf("the page is\n%s", text)
	}
}

// TestFidelityUsage: a run without a context, and a result that is not there, are told as what they are.
func TestFidelityUsage(t *testing.T) {
	p := &program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	for _, tt := range []struct {
		args  []string
		words string
	}{
		{[]string{"fidelity", "-o", filepath.Join(t.TempDir(), "r.jsonl")}, "no cluster: name one or more by --context"},
		{[]string{"fidelity", "--line-rate", "1G"}, "no cluster: name one or more by --context"}, // a condition of the lab beside them
		{[]string{"fidelity", filepath.Join(t.TempDir(), "none.jsonl")}, "no such file"},
	} {
		var said bytes.Buffer
		p.stderr = &said
		if code := p.main(tt.args); code != exitUsage || !strings.Contains(said.String(), tt.words) {
			t.Errorf("%q: exit code %d, %s", tt.args, code, said.String())
		}
	}
}
