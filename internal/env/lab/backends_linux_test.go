package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestSeveralBackendsAreSpread: n different pods, none of them the client's, on the nodes in turn; the first is where the
// Service's name says.
func TestSeveralBackendsAreSpread(t *testing.T) {
	for _, family := range []int{4, IPv6} {
		for nodes := 2; nodes <= 4; nodes++ {
			numbers := []int{2, 5, 17}
			s, err := NewSpec(plan.VariantOf("canal"), plan.Lab{Nodes: nodes, Services: 3, Family: family}, kept(numbers...)...)
			if err != nil {
				t.Fatal(err)
			}
			checkServices(t, s)
			for _, n := range numbers {
				for first, name := range []string{LocalService, RemoteService} {
					checkSpread(t, s, backendServiceName(name, backendSet{Of: n}), n, first)
				}
			}
		}
	}
}

// kept asks for Services whose backends stay.
func kept(numbers ...int) []backendSet { return Options{Backends: numbers}.backendSets() }

// checkServices: no two Services share a name, an address or a node port.
func checkServices(t *testing.T, s instanceSpec) {
	t.Helper()
	seen := map[string]bool{}
	for _, svc := range s.Services {
		for _, key := range []string{svc.Name, svc.VIP.String(), fmt.Sprint(svc.NodePort)} {
			if seen[key] && key != "0" {
				t.Errorf("%s: %s is there twice", svc.Name, key)
			}
			seen[key] = true
		}
		if !s.net.services.Contains(svc.VIP) {
			t.Errorf("%s: %v is no address of a Service", svc.Name, svc.VIP)
		}
	}
}

func checkSpread(t *testing.T, s instanceSpec, name string, n, first int) {
	t.Helper()
	for _, svc := range s.Services {
		if svc.Name != name {
			continue
		}
		pods, nodes := map[PodRef]bool{}, map[int]int{}
		for _, r := range svc.Backends {
			if r == (PodRef{0, 0}) || r.Pod >= len(s.Nodes[r.Node].Pods) {
				t.Errorf("%s: backend %+v", name, r)
			}
			pods[r] = true
			nodes[r.Node]++
		}
		if len(pods) != n || svc.Backends[0].Node != first || svc.NodePort == 0 {
			t.Errorf("%s on %d nodes: %+v", name, len(s.Nodes), svc)
		}
		for node, count := range nodes {
			if count < n/len(s.Nodes) || count > n/len(s.Nodes)+1 {
				t.Errorf("%s: %d of %d backends on node %d of %d", name, count, n, node, len(s.Nodes))
			}
		}
		return
	}
	t.Errorf("there is no %s", name)
}

func TestBackendsOutOfRange(t *testing.T) {
	for says, numbers := range map[string][]int{"want 2 to 250": {1}, "want 2 to": {251}} {
		if _, err := NewSpec(plan.VariantOf("canal"), plan.Lab{}, kept(numbers...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", numbers, err)
		}
	}
	s, err := NewSpec(plan.VariantOf("canal"), plan.Lab{}, kept(plan.MaxBackends)...)
	if err != nil || len(s.Nodes[0].Pods) != 1+plan.MaxBackends/2 {
		t.Errorf("%v, %d pods on a node", err, len(s.Nodes[0].Pods))
	}
}

func TestBackendsOfALab(t *testing.T) {
	needRights(t)
	l, err := Up(t.Context(), plan.Variants("raw", "host", "macvlan", "canal"), Options{Program: program, Backends: []int{5}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	standing(t, l)
	path := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}
	client, servers, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("canal"), Path: path, Servers: 5})
	if err != nil {
		t.Fatal(err)
	}
	single, _, err := endsOf(l, plan.VariantOf("canal"), path)
	if err != nil || client.Name != single.Name || client.Address != single.Address {
		t.Errorf("client %+v, of one backend %+v (%v)", client, single, err)
	}
	names := map[string]bool{client.Name: true}
	for _, s := range servers {
		names[s.Name] = true
		if s.Address != servers[0].Address || s.Address == s.ListenAddress || s.Port != agentPort || s.ListenPort != agentPort {
			t.Errorf("%+v", s)
		}
	}
	if len(servers) != 5 || len(names) != 6 {
		t.Errorf("%d servers, %v", len(servers), names)
	}
	outside := plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Remote}
	if _, servers, err = backendsOf(l, plan.Route{Variant: plan.VariantOf("canal"), Path: outside, Servers: 5}); err != nil || servers[0].Port < firstBackendsPort || servers[0].Address != "172.18.0.11" {
		t.Errorf("from outside: %+v, %v", servers, err)
	}
	if _, _, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("canal"), Path: path, Servers: 4}); err == nil || !strings.Contains(err.Error(), "4 backends") {
		t.Errorf("a number that nobody asked for: %v", err)
	}
	not := (*control.NotServedError)(nil)
	if _, _, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("raw"), Path: path, Servers: 5}); !errors.As(err, &not) {
		t.Errorf("a Service of raw: %v", err)
	}
	far := plan.Path{From: plan.Host, To: plan.Service, Locality: plan.Remote}
	if _, _, err := endsOf(l, plan.VariantOf("macvlan"), far); err != nil {
		t.Errorf("macvlan, one backend on the other node: %v", err)
	}
	if _, _, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("macvlan"), Path: far, Servers: 5}); !errors.As(err, &not) {
		t.Errorf("macvlan, backends on both nodes: %v", err)
	}
	if _, _, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("host"), Path: path, Servers: 5}); !errors.As(err, &not) || !strings.Contains(not.Reason, "share the addresses of 2 nodes") {
		t.Errorf("five backends on two addresses: %v", err)
	}
}
