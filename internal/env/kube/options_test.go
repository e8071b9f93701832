package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cnibench/cnibench/internal/plan"
)

func TestOptionDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	if o.TTL != defaultTTL || o.Ready != defaultReady || o.LoadBalancerTimeout != plan.DefaultBalancerTimeout ||
		o.TrafficPolicy != "Cluster" || o.Say == nil {
		t.Errorf("defaults: %+v", o)
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
