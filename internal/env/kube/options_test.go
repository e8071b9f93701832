package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestOptionFaults wants all of them at once.
func TestOptionFaults(t *testing.T) {
	o := Options{
		PullPolicy: "Sometimes", TrafficPolicy: "Global", Family: 5, ClientNode: "n1", ServerNode: "n1", TTL: time.Second,
		PullSecrets: []string{"a/b/c"}, Backends: []int{1, 9999}, CPURequest: "half", MemoryRequest: "64Q", CPULimit: "-",
		BalancerClass: "in ternal", ServiceAnnotations: map[string]string{"sch eme": "x", "example.com/fine": "y"}, BalancerTimeout: -time.Second,
	}
	err := o.check()
	var bad *ConfigError
	if !errors.As(err, &bad) {
		t.Fatalf("%v is no ConfigError", err)
	}
	for _, want := range []string{`"Sometimes"`, `"Global"`, "family 5", `both "n1"`, "1s", "1 backends", "9999 backends", `CPU request "half"`, `memory request "64Q"`, `CPU limit "-"`, `class "in ternal"`, `annotation "sch eme"`, "wait of -1s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in:\n%v", want, err)
		}
	}
	var zero Options
	if err := zero.check(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	if zero.TTL != defaultTTL || zero.PullPolicy != "IfNotPresent" || zero.TrafficPolicy != "Cluster" || zero.Say == nil {
		t.Errorf("defaults: %+v", zero)
	}
}

func TestRunID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := RunID()
		if seen[id] || len(id) != 8 || len(validation.IsDNS1035Label(id)) > 0 {
			t.Fatalf("run id %q", id)
		}
		seen[id] = true
	}
}

func TestCandidatePorts(t *testing.T) {
	a, b := candidatePorts("abcdefgh"), candidatePorts("ijkmnpqr")
	if len(a) != candidates {
		t.Fatalf("%d ports", len(a))
	}
	same := 0
	seen := map[int]bool{}
	for i, port := range a {
		if port < firstHostPort || port+slotSize > 30000 || seen[port] {
			t.Errorf("port %d", port)
		}
		seen[port] = true
		if b[i] == port {
			same++
		}
	}
	if again := candidatePorts("abcdefgh"); again[0] != a[0] || same > 3 {
		t.Errorf("the order does not go by the run: %d in common", same)
	}
}
