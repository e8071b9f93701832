package kube

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

var (
	toBalancer = plan.Path{From: plan.External, To: plan.LoadBalancer}
	betweenPod = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
)

// balanced are options for a path to a load balancer, and one beside it.
func balanced() Options {
	return Options{Paths: []plan.Path{toBalancer, betweenPod}, Host: true, Backends: []int{3}, Cluster: plan.Cluster{LoadBalancerTimeout: 5 * time.Second}}
}

func ingress(ways ...corev1.LoadBalancerIngress) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Status.LoadBalancer.Ingress = ways }
}

// TestBalancerAddresses is about what a load balancer may say, and what comes of it.
func TestBalancerAddresses(t *testing.T) {
	resolve := lookup(func(_ context.Context, network, host string) ([]netip.Addr, error) {
		known := map[string]netip.Addr{"ip lb.example": netip.MustParseAddr("203.0.113.9"), "ip6 lb.example": netip.MustParseAddr("2001:db8::9"), "ip4 lb.example": netip.MustParseAddr("::ffff:203.0.113.9")}
		if a, ok := known[network+" "+host]; ok {
			return []netip.Addr{a}, nil
		}
		return nil, errors.New("no such host")
	})
	v4, v6 := corev1.LoadBalancerIngress{IP: "203.0.113.7"}, corev1.LoadBalancerIngress{IP: "2001:db8::7"}
	proxy := corev1.LoadBalancerIngress{IP: "203.0.113.8", IPMode: new(corev1.LoadBalancerIPModeProxy)}
	for name, c := range map[string]struct {
		family  int
		balance func(*corev1.Service)
		want    string
		// fact and way are words of the facts.
		fact, way string
	}{
		"an address":              {0, ingress(v4), "203.0.113.7", "203.0.113.7, ipMode VIP", "not part of what is measured"},
		"the wanted of two":       {6, ingress(v4, v6), "2001:db8::7", "2001:db8::7, ipMode VIP", "not part of what is measured"},
		"the first of two":        {0, ingress(v6, v4), "2001:db8::7", "", ""},
		"not by way of the nodes": {4, ingress(proxy), "203.0.113.8", "203.0.113.8, ipMode Proxy", "by way of the balancer"},
		"a name":                  {0, ingress(corev1.LoadBalancerIngress{Hostname: "lb.example"}), "203.0.113.9", "lb.example = 203.0.113.9, ipMode VIP", ""},
		"a name, IPv4":            {4, ingress(corev1.LoadBalancerIngress{Hostname: "lb.example"}), "203.0.113.9", "", ""},
		"a name, IPv6":            {6, ingress(corev1.LoadBalancerIngress{Hostname: "lb.example"}), "2001:db8::9", "", ""},
		"a name beside another":   {0, ingress(corev1.LoadBalancerIngress{Hostname: "nowhere.example"}, v4), "203.0.113.7", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := balanced()
			o.Family = c.family
			w, cluster := newWorld(t, o, nodes3()...)
			w.balance, cluster.lookup = c.balance, resolve
			if err := cluster.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, profile := range []string{"x", "host"} {
				client, server, err := endsOf(cluster, plan.VariantOf(profile), toBalancer)
				if err != nil || server.Address != c.want || server.Port != server.ListenPort || !strings.HasSuffix(client.Name, external) {
					t.Errorf("%s: %+v -> %+v, %v", profile, client, server, err)
				}
			}
			if _, servers, err := backendsOf(cluster, plan.Route{Variant: plan.VariantOf("x"), Path: toBalancer, Servers: 3}); err != nil || len(servers) != 3 || servers[2].Address != c.want {
				t.Errorf("three backends: %+v, %v", servers, err)
			}
			f := cluster.Facts()
			if !strings.Contains(f[FactBalancer], c.fact) || f[FactBalancer] == "" || !strings.Contains(f[FactBalancerWay], c.way) || f[FactBalancerWay] == "" {
				t.Errorf("facts: %v", f)
			}
		})
	}
}

// TestBalancerComesLate asks until there is an address, and bears that the API server does not answer for a while.
func TestBalancerComesLate(t *testing.T) {
	w, c := newWorld(t, balanced(), nodes3()...)
	w.balance = func(*corev1.Service) {}
	asked := 0
	w.PrependReactor("get", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		svc := &corev1.Service{}
		svc.Name, svc.Namespace = a.(clienttesting.GetAction).GetName(), a.GetNamespace()
		switch {
		case asked == 2:
			return true, nil, apierrors.NewInternalError(errors.New("etcd is away"))
		case asked > 5:
			ingress(corev1.LoadBalancerIngress{IP: "203.0.113.7"})(svc)
		}
		return true, svc, nil
	})
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, server, err := endsOf(c, plan.VariantOf("x"), toBalancer); err != nil || server.Address != "203.0.113.7" || asked <= 5 {
		t.Errorf("after %d looks: %+v, %v", asked, server, err)
	}
}

// TestNoBalancer wants the path to be not served, with the reason and the way out, and the others to go on.
func TestNoBalancer(t *testing.T) {
	for name, c := range map[string]struct {
		family  int
		balance func(*corev1.Service)
		warn    bool
		want    []string
	}{
		"nobody":          {0, func(*corev1.Service) {}, false, []string{"no load balancer of class example.com/l2 gave the Service an address within 1s: ", "MetalLB", "leave the path out"}},
		"it says why":     {0, func(*corev1.Service) {}, true, []string{"(SyncLoadBalancerFailed: no quota left)"}},
		"other family":    {6, ingress(corev1.LoadBalancerIngress{IP: "203.0.113.7"}), false, []string{"(203.0.113.7 is not IPv6)"}},
		"unknown name":    {0, ingress(corev1.LoadBalancerIngress{Hostname: "lb.example"}), false, []string{"lb.example cannot be resolved here: no such host"}},
		"name of nothing": {4, ingress(corev1.LoadBalancerIngress{Hostname: "empty.example"}), false, []string{"empty.example has no address of that family"}},
		"says nothing":    {0, ingress(corev1.LoadBalancerIngress{}), false, []string{"neither an address nor a name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := balanced()
			o.Family, o.LoadBalancerTimeout, o.LoadBalancerClass = c.family, time.Second, "example.com/l2"
			w, cluster := newWorld(t, o, nodes3()...)
			w.balance = c.balance
			cluster.lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
				if host == "empty.example" {
					return nil, nil
				}
				return nil, errors.New("no such host")
			}
			if c.warn {
				w.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, &corev1.EventList{Items: []corev1.Event{{Type: "Warning", Reason: "SyncLoadBalancerFailed", Message: "no quota left", InvolvedObject: corev1.ObjectReference{Name: serviceBalancer}}}}, nil
				})
			}
			if err := cluster.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, profile := range []string{"x", "host"} {
				_, _, err := endsOf(cluster, plan.VariantOf(profile), toBalancer)
				var not *control.NotServedError
				if !errors.As(err, &not) {
					t.Fatalf("%s: %v", profile, err)
				}
				for _, want := range c.want {
					if !strings.Contains(not.Reason, want) {
						t.Errorf("%q is not in %q", want, not.Reason)
					}
				}
			}
			var not *control.NotServedError
			if _, _, err := backendsOf(cluster, plan.Route{Variant: plan.VariantOf("x"), Path: toBalancer, Servers: 3}); !errors.As(err, &not) {
				t.Errorf("several backends: %v", err)
			}
			if _, server, err := endsOf(cluster, plan.VariantOf("x"), betweenPod); err != nil || server.Address == "" {
				t.Errorf("the path beside it: %v", err)
			}
			if silent, err := cluster.Reach(t.Context(), plan.Variants("x", "host")); err != nil || len(silent) > 0 {
				t.Errorf("reach: %v, %v", silent, err)
			}
			if f := cluster.Facts(); f[FactBalancer] != "" || f[FactBalancerWay] != "" {
				t.Errorf("facts of what is not there: %v", f)
			}
			if err := cluster.Close(t.Context()); err != nil || len(w.left(t)) > 0 {
				t.Errorf("left: %v, %v", w.left(t), err)
			}
		})
	}
}

// TestOneOfTheBalancersIsMissing: several backends have a Service of their own, and so an address of their own.
func TestOneOfTheBalancersIsMissing(t *testing.T) {
	o := balanced()
	o.LoadBalancerTimeout = 500 * time.Millisecond
	w, c := newWorld(t, o, nodes3()...)
	w.balance = func(svc *corev1.Service) {
		if svc.Name == serviceBalancer {
			ingress(corev1.LoadBalancerIngress{IP: "203.0.113.7"})(svc)
		}
	}
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := endsOf(c, plan.VariantOf("x"), toBalancer); err != nil {
		t.Error(err)
	}
	var not *control.NotServedError
	if _, _, err := backendsOf(c, plan.Route{Variant: plan.VariantOf("x"), Path: toBalancer, Servers: 3}); !errors.As(err, &not) {
		t.Errorf("three backends without an address: %v", err)
	}
}

// TestBalancerNeedsItsRight: the right is asked for when a path needs it, and a refusal ends the attempt with the reason.
func TestBalancerNeedsItsRight(t *testing.T) {
	w, c := newWorld(t, balanced(), nodes3()...)
	w.missing[balancerRight.String()] = true
	var missing *AccessError
	if err := c.Preflight(t.Context()); !errors.As(err, &missing) || len(missing.Missing) != 1 || missing.Missing[0] != balancerRight {
		t.Errorf("a path to a load balancer without the right: %v", err)
	}
	w.refuse("get", "services", apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, serviceBalancer, errors.New(`User "u" cannot get resource "services"`)))
	err := c.Up(t.Context())
	if err == nil || !strings.Contains(err.Error(), `cannot get resource "services"`) || !strings.Contains(advice.Of(err), "kube access") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	other, d := newWorld(t, Options{Paths: []plan.Path{betweenPod}}, nodes3()...)
	other.missing[balancerRight.String()] = true
	if err := d.Preflight(t.Context()); err != nil {
		t.Errorf("no path to a load balancer: %v", err)
	}
}

func TestBalancerWaitIsInterrupted(t *testing.T) {
	o := balanced()
	o.LoadBalancerTimeout = time.Hour
	w, c := newWorld(t, o, nodes3()...)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.balance = func(*corev1.Service) { cancel(interrupted) }
	if err := c.Up(ctx); !errors.Is(err, interrupted) {
		t.Errorf("%v does not say that it was interrupted", err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
