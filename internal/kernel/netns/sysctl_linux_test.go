package netns

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestSettingsStayInsideTheNamespace(t *testing.T) {
	const name = "net/ipv4/ip_default_ttl"
	a, b := fresh(t), fresh(t)
	host, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for ns, value := range map[*NS]string{a: "33", b: "44"} {
		if err := SetSysctls(ns, []Setting{{Name: name, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	for ns, want := range map[*NS]string{a: "33", b: "44"} {
		if got, err := GetSysctl(ns, name); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %s", name, got, err, want)
		}
	}
	if after, err := os.ReadFile("/proc/sys/" + name); err != nil || string(after) != string(host) {
		t.Errorf("the host has %q (%v), had %q", after, err, host)
	}
}

func TestBlanksDoNotMatter(t *testing.T) {
	ns := fresh(t)
	const name = "net/ipv4/ip_local_port_range"
	if err := SetSysctls(ns, []Setting{{Name: name, Value: "20000 30000"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := GetSysctl(ns, name); err != nil || got != "20000 30000" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	ns := fresh(t)
	const missing = "net/ipv4/no_such_setting"
	if err := SetSysctls(ns, []Setting{{Name: missing, Value: "1"}}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a setting that is not there: %v", err)
	}
	if err := SetSysctls(ns, []Setting{{Name: missing, Value: "1", IfPresent: true}}); err != nil {
		t.Errorf("a setting that need not be there: %v", err)
	}
	if err := SetSysctls(ns, []Setting{{Name: "net/ipv4/ip_forward", Value: "many"}}); err == nil || !strings.Contains(err.Error(), "ip_forward=many") {
		t.Errorf("a value that cannot be: %v", err)
	}
	// The write succeeds, and what is read back is another text.
	if err := SetSysctls(ns, []Setting{{Name: "net/ipv4/ip_default_ttl", Value: "0x10"}}); err == nil || !strings.Contains(err.Error(), "says") {
		t.Errorf("a write that did not take: %v", err)
	}
}
