package selftest

import (
	"testing"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// ids returns what would be asserted of a profile.
func ids(t *testing.T, name string) map[string]check {
	t.Helper()
	if _, ok := profile.Lookup(name); !ok {
		t.Fatalf("expectations of %q, which is no profile", name)
	}
	found := map[string]check{}
	for _, c := range checks(expectations[name]) {
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

func TestEveryLabProfileHasATable(t *testing.T) {
	for _, name := range profile.Names() {
		if _, ok := expectations[name]; !ok {
			t.Errorf("%s can be raised in the lab and has no expectations", name)
		}
	}
	for name := range expectations {
		found := ids(t, name)
		for _, must := range []string{"mtu", "offload", "wire.limit@" + expectations[name].crossPath().String()} {
			if _, ok := found[must]; !ok {
				t.Errorf("%s: nothing asserts %s", name, must)
			}
		}
	}
}

// TestTablesAgreeWithTheCatalogue: what the catalogue says in words, the expectations must assert.
func TestTablesAgreeWithTheCatalogue(t *testing.T) {
	for name, x := range expectations {
		p, _ := profile.Lookup(name)
		if (p.Encapsulation != "none") != (x.tunnel != nil) || x.tunnel != nil && (p.Encapsulation == "ipip") != x.tunnel.ipip {
			t.Errorf("%s: encapsulation %s, expected tunnel %v", name, p.Encapsulation, x.tunnel)
		}
		if (p.Policy == "calico-iptables" || p.Policy == "calico-nftables") != x.policed {
			t.Errorf("%s: policy engine %s, chains expected to count: %v", name, p.Policy, x.policed)
		}
		if (p.Services == "ebpf") != (x.bpf != nil) {
			t.Errorf("%s: Services by %s, programs expected: %v", name, p.Services, x.bpf != nil)
		}
		if x.tracked && x.untouched {
			t.Errorf("%s: tracked, and no rule counts", name)
		}
		if _, ok := x.served[podSvcRemote]; p.Services == "none" && ok {
			t.Errorf("%s has no Services, and one is expected to work", name)
		}
	}
}

// TestTablesAgreeOnPaths: a path that the lab serves has its proof, and what the lab does not serve is not expected to
// work.
func TestTablesAgreeOnPaths(t *testing.T) {
	for name, x := range expectations {
		spec, err := lab.NewSpec(plan.Variant(name), plan.Lab{})
		if err != nil {
			t.Fatal(err)
		}
		refused := map[plan.Path]bool{}
		for _, path := range x.refused {
			refused[path] = true
		}
		for _, path := range plan.Paths {
			_, expected := x.balanced().served[path]
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
		if got := set(tc.words, "none"); got != tc.want {
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
