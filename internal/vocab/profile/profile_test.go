package profile

import "testing"

func TestCatalogueIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		seen[p.Name] = true
		if p.Title == "" || p.Summary == "" || p.Services == "" || p.Policy == "" {
			t.Errorf("%s lacks a description", p.Name)
		}
		if want := 1500 - p.Overhead; p.PodMTU != want {
			t.Errorf("%s: pod MTU %d does not follow from the overhead of %d bytes", p.Name, p.PodMTU, p.Overhead)
		}
		if (p.Encapsulation == "none") != (p.Overhead == 0) {
			t.Errorf("%s: encapsulation %s with %d bytes of overhead", p.Name, p.Encapsulation, p.Overhead)
		}
		if p.Lab && len(p.Needs) == 0 {
			t.Errorf("%s can be raised in the lab but needs nothing", p.Name)
		}
	}
	for _, name := range InLab() {
		if p, ok := Lookup(name); !ok || !p.Lab {
			t.Errorf("InLab names %q, Lookup says %v", name, p)
		}
	}
	if _, ok := Lookup("no such profile"); ok {
		t.Error("Lookup finds what is not there")
	}
}
