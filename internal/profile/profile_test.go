package profile

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCatalogueIsComplete(t *testing.T) {
	list, err := read(Files)
	if err != nil {
		t.Fatal(err)
	}
	names, orders := map[string]bool{}, map[int]string{}
	for _, p := range list {
		if names[p.Name] || orders[p.Order] != "" {
			t.Errorf("%s: the name or the order %d is used twice: %s", p.Name, p.Order, orders[p.Order])
		}
		names[p.Name], orders[p.Order] = true, p.Name
		if p.Title == "" || p.Summary == "" || p.Services == "" || p.Policy == "" || len(p.Needs) == 0 {
			t.Errorf("%s lacks a description", p.Name)
		}
		if (p.Encapsulation == "none") != (p.Overhead == 0) || (p.Encapsulation == "none") != (p.Tunnel == nil) {
			t.Errorf("%s: encapsulation %s with %d bytes of overhead and tunnel %v", p.Name, p.Encapsulation, p.Overhead, p.Tunnel)
		}
		if p.Tunnel != nil && p.Tunnel.Kind != p.Encapsulation {
			t.Errorf("%s: encapsulation %s by a device of kind %s", p.Name, p.Encapsulation, p.Tunnel.Kind)
		}
		if (p.PodDevice == "") != (p.Name == Raw || p.Name == Host) {
			t.Errorf("%s: device of the pod is %q", p.Name, p.PodDevice)
		}
		if q, ok := Lookup(p.Name); !ok || q.Name != p.Name {
			t.Errorf("Lookup(%q) = %v, %v", p.Name, q, ok)
		}
	}
	if _, ok := Lookup("no such profile"); ok {
		t.Error("Lookup finds a profile that does not exist")
	}
	if all := Names(); len(all) != len(list) || all[0] != Raw || all[1] != Host {
		t.Errorf("Names: %v", all)
	}
}

// TestUnknownField: a typing error in a record is not ignored.
func TestUnknownField(t *testing.T) {
	_, err := read(fstest.MapFS{"some/other.yaml": {Data: []byte("order: 1\ntunel: {kind: vxlan}\n")}})
	if err == nil || !strings.Contains(err.Error(), "some/other.yaml") || !strings.Contains(err.Error(), "tunel") {
		t.Errorf("error: %v", err)
	}
}
