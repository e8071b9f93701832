package selftest

import (
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// table returns what is expected of a profile under the default conditions.
func table(name string) expectation {
	spec, err := lab.NewSpec(plan.VariantOf(name), plan.Lab{})
	if err != nil {
		panic(err)
	}
	return newExpectation(spec.Profile, spec.Expect())
}

// ids returns what would be asserted of a profile.
func ids(t *testing.T, name string) map[string]check {
	t.Helper()
	found := map[string]check{}
	for _, c := range allChecks(table(name)) {
		if _, twice := found[c.id()]; twice {
			t.Errorf("%s: two checks are called %s", name, c.id())
		}
		if c.what == "" || c.probe == nil {
			t.Errorf("%s: check %s does not say or do anything", name, c.id())
		}
		found[c.id()] = c
	}
	return found
}

func TestEveryProfileHasATable(t *testing.T) {
	for _, name := range profile.Names() {
		found := ids(t, name)
		for _, must := range []string{"mtu", "offload", "wire.limit@" + table(name).crossPath().String()} {
			if _, ok := found[must]; !ok {
				t.Errorf("%s: nothing asserts %s", name, must)
			}
		}
	}
}

// TestTablesAgreeWithTheCatalogue: what the catalogue says in words, the expectations must assert.
func TestTablesAgreeWithTheCatalogue(t *testing.T) {
	for _, p := range profile.All() {
		name, x := p.Name, table(p.Name)
		if x.Remote != nil && x.Remote.Device == "" && x.tunnel == nil {
			t.Errorf("%s: the route to other nodes has no device", name)
		}
		if (p.Services == "ebpf") != (x.Programs != nil) {
			t.Errorf("%s: Services by %s, programs expected: %v", name, p.Services, x.Programs != nil)
		}
		if x.Tracked && x.Untouched {
			t.Errorf("%s: tracked, and no rule counts", name)
		}
		if _, ok := x.Served[dataplane.PodSvcRemote]; p.Services == "none" && ok {
			t.Errorf("%s has no Services, and one is expected to work", name)
		}
	}
}

// TestTablesAgreeOnPaths: a path that the lab serves has its proof, and what the lab does not serve is not expected to
// work.
func TestTablesAgreeOnPaths(t *testing.T) {
	for _, name := range profile.Names() {
		x := table(name)
		spec, err := lab.NewSpec(plan.VariantOf(name), plan.Lab{})
		if err != nil {
			t.Fatal(err)
		}
		refused := map[plan.Path]bool{}
		for _, path := range x.Refused {
			refused[path] = true
		}
		for _, path := range plan.Paths {
			_, expected := x.withBalancer().Served[path]
			_, err := spec.Ends(path)
			switch {
			case expected && refused[path]:
				t.Errorf("%s: %s is expected to work and not to", name, path)
			case err == nil && !expected:
				t.Errorf("%s: the lab serves %s and nothing proves it", name, path)
			case err != nil && expected:
				t.Errorf("%s: %s is expected to work, the lab says: %v", name, path, err)
			}
		}
	}
}

func TestSet(t *testing.T) {
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{nil, "none"},
		{[]string{"b"}, "b"},
		{[]string{"b", "a", "b"}, "a, b"},
	} {
		if got := joinDistinct(tc.words, "none"); got != tc.want {
			t.Errorf("set(%q) = %q, want %q", tc.words, got, tc.want)
		}
	}
}

func TestFailed(t *testing.T) {
	all := []Assertion{{ID: "a", OK: true}, {ID: "b"}, {ID: "c", OK: true}}
	if f := Failed(all); len(f) != 1 || f[0].ID != "b" {
		t.Errorf("got %v", f)
	}
}
