package metric

import "testing"

func TestCatalogueIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] {
			t.Errorf("%s is listed twice", m.Name)
		}
		seen[m.Name] = true
		if m.Title == "" || m.Unit == "" || m.Definition == "" || m.Source == "" {
			t.Errorf("%s lacks a title, unit, definition or source", m.Name)
		}
		if got, ok := Lookup(m.Name); !ok || got != m {
			t.Errorf("Lookup(%q) = %v, %v", m.Name, got, ok)
		}
	}
	if _, ok := Lookup("no such metric"); ok {
		t.Error("Lookup finds what is not there")
	}
}

func TestUnitFollowsWork(t *testing.T) {
	for _, c := range []struct{ name, work, want string }{
		{ServiceDemand, "KB", "ns/KB"},
		{ServerCPU, "transaction", "ns/transaction"},
		{Instructions, "KB", "1/KB"},
		{Goodput, "KB", "bit/s"},
		{"rtt.p99", "transaction", "ns"},
	} {
		if got := UnitFor(c.name, c.work); got != c.want {
			t.Errorf("UnitFor(%s, %s) = %q, want %q", c.name, c.work, got, c.want)
		}
	}
}
