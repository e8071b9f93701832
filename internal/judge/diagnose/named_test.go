package diagnose

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// TestNamed: a Service or pod that is named is at fault for what its own address and pods do, and not for a policy that may
// be meant for others than the prober.
func TestNamed(t *testing.T) {
	took := func(name string, ns int64) Backend {
		return Backend{name, netstate.Dialled{To: name, Times: []int64{ns, 2 * ns}}}
	}
	failed := func(name, why string) Backend {
		return Backend{name, netstate.Dialled{To: name, Failed: map[string]int{why: 20}}}
	}
	pods := []Pod{{Name: "cart-1"}, {Name: "cart-2"}}
	refused := "connection refused"
	for name, tt := range map[string]struct {
		named   Named
		verdict Verdict
		cause   string
		says    string
	}{
		"all answer":              {Named{Pods: pods, Backends: []Backend{took("cart-1", 40e3), took("cart-2", 50e3), took("", 60e3)}}, Fine, "", ""},
		"no pod":                  {Named{Address: "10.96.0.7:80"}, Application, "named", "no pod is behind it"},
		"none is ready":           {Named{Unready: []string{"cart-1 (CrashLoopBackOff)"}}, Application, "named", "not ready: cart-1 (CrashLoopBackOff)"},
		"a wrong target port":     {Named{Pods: pods, Backends: []Backend{failed("cart-1", refused), failed("cart-2", refused), failed("", refused)}}, Application, "named", "cart-2 (cart-2) failed 20 of 20 connections (connection refused)"},
		"one of two":              {Named{Pods: pods, Backends: []Backend{took("cart-1", 40e3), failed("cart-2", netstate.Timeout), took("", 60e3)}}, Service, "backend", "cart-1 took all"},
		"one of two is late":      {Named{Pods: pods, Backends: []Backend{took("cart-1", 40e3), took("cart-2", 5e9), took("", 60e3)}}, Service, "backend", "cart-2"},
		"a firewall of the pod":   {Named{Pods: pods[:1], Backends: []Backend{failed("cart-1", netstate.Timeout)}}, Service, "named", "timeout"},
		"a policy":                {Named{Pods: pods[:1], Policies: []string{"shop/closed"}, Backends: []Backend{failed("cart-1", netstate.Timeout)}}, Undecided, "", "shop/closed"},
		"only the address":        {Named{Pods: pods[:1], Policies: []string{"shop/open"}, Backends: []Backend{took("cart-1", 40e3), failed("", netstate.Timeout)}}, Service, "named", "all its pods answer"},
		"pods of one node alone":  {Named{Pods: pods[:1], Note: "its internalTrafficPolicy is Local", Backends: []Backend{took("cart-1", 40e3), failed("", netstate.Timeout)}}, Service, "named", "Local"},
		"without a TCP port":      {Named{Why: "it has no TCP port"}, Undecided, "", "it has no TCP port"},
		"without a connection":    {Named{Pods: pods}, Undecided, "", "no connection was tried"},
		"a pod that is not ready": {Named{Pods: pods[:1], Unready: []string{"cart-2 (Pending)"}, Backends: []Backend{took("cart-1", 40e3)}}, Fine, "", ""},
	} {
		e := healthy()
		tt.named.Name = "Service shop/cart"
		e.Named = &tt.named
		a := Judge(e)
		if a.Verdict != tt.verdict || a.Cause != tt.cause || !strings.Contains(a.Text, tt.says) {
			t.Errorf("%s: %s/%s %q; want %s/%s %q", name, a.Verdict, a.Cause, a.Text, tt.verdict, tt.cause, tt.says)
		}
		if a.Verdict == Undecided && !strings.Contains(a.Next[0], "kubectl get pods") {
			t.Errorf("%s: next %q", name, a.Next)
		}
	}
}
