package lab

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestBalancedAddresses: a Service that a path to the balancer leads to has an address there, which nobody else has and
// which all that serve it know; others have none.
func TestBalancedAddresses(t *testing.T) {
	toBalancer := plan.Path{From: plan.External, To: plan.LoadBalancer}
	for _, l := range []plan.Lab{{}, {Family: 6}, {TrafficPolicy: "Local"}, {ServiceProxy: "nftables"}} {
		s, err := NewSpec(plan.VariantOf("flannel-vxlan"), l, kept(2, 3)...)
		if err != nil {
			t.Fatal(err)
		}
		taken := map[netip.Addr]bool{s.Switch.Addr.Addr(): true, s.External.Addr.Addr(): true}
		for _, n := range s.Nodes {
			taken[n.Addr.Addr()] = true
		}
		given := 0
		for _, svc := range s.Services {
			if svc.Balanced.IsValid() != strings.HasPrefix(svc.Name, RemoteService) {
				t.Errorf("%s has the address %v", svc.Name, svc.Balanced)
			}
			if !svc.Balanced.IsValid() {
				continue
			}
			given++
			if taken[svc.Balanced] || !s.External.Addr.Contains(svc.Balanced) {
				t.Errorf("%s has the address %v", svc.Name, svc.Balanced)
			}
			taken[svc.Balanced] = true
		}
		if given != 3 {
			t.Errorf("%d Services have an address", given)
		}
		e, err := s.Ends(toBalancer)
		if err != nil || e.Client != s.External.Name || e.Server != "node-2/pod-1" || !taken[e.Address] || e.Port != agentPort {
			t.Errorf("%+v, %v", e, err)
		}
		for node := range s.Nodes {
			for _, svc := range s.proxyServices(node) {
				if (len(svc.LoadBalancerIPs) == 1) != strings.HasPrefix(svc.Name, RemoteService) {
					t.Errorf("kube-proxy of node %d: %s has %v", node, svc.Name, svc.LoadBalancerIPs)
				}
			}
		}
	}
}

// TestNoBalancerUnderIPVS: what the model of kube-proxy has not is refused by name, and where there is no kube-proxy nothing
// is.
func TestNoBalancerUnderIPVS(t *testing.T) {
	for _, name := range profile.Names() {
		s, err := NewSpec(plan.VariantOf(name), plan.Lab{ServiceProxy: "ipvs"})
		if err != nil {
			continue // refused as a whole
		}
		_, err = s.Ends(plan.Path{From: plan.External, To: plan.LoadBalancer})
		var not *control.NotServedError
		if is := errors.As(err, &not); is != (s.ProxyIPVS() || name == profile.Raw) || s.ProxyIPVS() && !strings.Contains(not.Reason, "ipvs") {
			t.Errorf("%s: %v", name, err)
		}
		for _, svc := range s.Services {
			if svc.Balanced.IsValid() && s.ProxyIPVS() {
				t.Errorf("%s: %s has an address that nobody serves", name, svc.Name)
			}
		}
	}
}

// TestBackendsBehindABalancer: each has the balancer's address, and with the policy Local they are not all to be had.
func TestBackendsBehindABalancer(t *testing.T) {
	toBalancer := plan.Path{From: plan.External, To: plan.LoadBalancer}
	for policy, served := range map[condition.TrafficPolicy]bool{condition.TrafficCluster: true, condition.TrafficLocal: false} {
		l := upWith(t, Options{Lab: plan.Lab{TrafficPolicy: policy}, Backends: []int{3}}, "ptp")
		client, servers, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("ptp"), Path: toBalancer, Servers: 3})
		var not *control.NotServedError
		if !served {
			if !errors.As(err, &not) || not.Path != toBalancer.String() || !strings.Contains(not.Reason, "externalTrafficPolicy Local") {
				t.Errorf("%s: %v", policy, err)
			}
			continue
		}
		if err != nil || len(servers) != 3 || !strings.HasSuffix(client.Name, "external") {
			t.Fatalf("%s: %v, %v", policy, servers, err)
		}
		want := l.Instance(plan.VariantOf("ptp")).Service(backendServiceName(RemoteService, backendSet{Of: 3})).Balanced.String()
		for _, e := range servers {
			if e.Address != want || e.Port != agentPort {
				t.Errorf("%s is at %s:%d, want %s", e.Name, e.Address, e.Port, want)
			}
		}
	}
}

// TestNoBalancer: where nobody asked for a balancer, a node has nothing of one.
func TestNoBalancer(t *testing.T) {
	l := upWith(t, Options{NoBalancer: true, Backends: []int{2}, Rolled: []int{2}}, "ptp")
	s := l.Instance(plan.VariantOf("ptp")).Spec
	for _, svc := range s.Services {
		if svc.Balanced.IsValid() {
			t.Errorf("%s has the address %v", svc.Name, svc.Balanced)
		}
	}
	_, _, err := endsOf(l, plan.VariantOf("ptp"), plan.Path{From: plan.External, To: plan.LoadBalancer})
	var not *control.NotServedError
	if !errors.As(err, &not) || !strings.Contains(not.Reason, "no load balancer") {
		t.Errorf("%v", err)
	}
}
