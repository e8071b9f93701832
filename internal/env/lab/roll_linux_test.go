package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// TestRolledServices stand beside those whose backends stay, with addresses and node ports of their own.
func TestRolledServices(t *testing.T) {
	for _, family := range []int{4, IPv6} {
		l := plan.Lab{Family: family, Services: 7, PodsPerNode: 4}
		s, err := NewSpec(plan.VariantOf("canal"), l, kept(2, 3)...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewSpec(plan.VariantOf("canal"), l, Options{Backends: []int{2, 3}, Rolled: []int{2, 3}}.backendSets()...)
		if err != nil {
			t.Fatal(err)
		}
		checkServices(t, r)
		if len(r.Services) != len(s.Services)+4 {
			t.Errorf("%d Services became %d", len(s.Services), len(r.Services))
		}
		for first, name := range []string{LocalService, RemoteService} {
			checkSpread(t, r, backendServiceName(name, backendSet{Of: 3, Rolled: true}), 3, first)
		}
		for i, svc := range r.Services {
			if strings.HasSuffix(svc.Name, "-rolled") && (i < 4 || svc.Port != agentPort || svc.Balanced.IsValid() != strings.HasPrefix(svc.Name, RemoteService)) {
				t.Errorf("%d: %+v", i, svc)
			}
		}
	}
	raw, err := NewSpec(plan.VariantOf("raw"), plan.Lab{}, backendSet{Of: 2, Rolled: true})
	if err != nil || len(raw.Services) != 0 {
		t.Errorf("raw: %v, %v", err, raw.Services)
	}
}

// TestRoll takes a backend out on all nodes at once: nobody new is sent to it though it listens; and puts it back.
func TestRoll(t *testing.T) {
	needRights(t)
	for _, proxy := range []condition.ProxyMode{"iptables", "nftables"} {
		t.Run(string(proxy), func(t *testing.T) {
			l := upWith(t, Options{Lab: plan.Lab{ServiceProxy: proxy}, Backends: []int{3}, Rolled: []int{3}}, "ptp")
			path := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
			client, servers, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("ptp"), Path: path, Servers: 3, Rolled: true})
			if err != nil {
				t.Fatal(err)
			}
			i := l.Instance(plan.VariantOf("ptp"))
			for n, e := range servers {
				answer(t, i, e, n)
			}
			met := func(address string) map[int]int { return ask(t, i, client, address) }
			rolledAddress := net.JoinHostPort(servers[0].Address, fmt.Sprint(servers[0].Port))
			_, kept, err := backendsOf(l, plan.Route{Variant: plan.VariantOf("ptp"), Path: path, Servers: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got := met(rolledAddress); len(got) != 3 {
				t.Fatalf("before: %v", got)
			}
			b := control.Backend{Route: plan.Route{Variant: plan.VariantOf("ptp"), Path: path, Servers: 3, Rolled: true}, Index: 1}
			if err := l.Roll(t.Context(), b, false); err != nil {
				t.Fatal(err)
			}
			if got := met(rolledAddress); len(got) != 2 || got[1] > 0 {
				t.Errorf("without the second: %v", got)
			}
			if got := met(net.JoinHostPort(kept[0].Address, fmt.Sprint(kept[0].Port))); len(got) != 3 {
				t.Errorf("of the Service that stays: %v", got)
			}
			if err := l.Roll(t.Context(), b, true); err != nil {
				t.Fatal(err)
			}
			if got := met(rolledAddress); len(got) != 3 {
				t.Errorf("again: %v", got)
			}
			for _, wrong := range []control.Backend{{Route: plan.Route{Variant: plan.VariantOf("canal"), Path: path, Servers: 3, Rolled: true}}, {Route: plan.Route{Variant: plan.VariantOf("ptp"), Path: path, Servers: 2, Rolled: true}}, {Route: plan.Route{Variant: plan.VariantOf("ptp"), Path: path, Servers: 3, Rolled: true}, Index: 3}} {
				if err := l.Roll(t.Context(), wrong, false); err == nil {
					t.Errorf("%+v was rolled", wrong)
				}
			}
		})
	}
}

// TestRolledFromOutside takes each backend out while a client outside goes on. What its packets meet, rules or flows that
// programs have noted at one node or two, may not send anybody new to who is out. The client has few ports, so that nearly
// every connection is on one that was used before; each path has its own, because backends remember for a minute which they
// have met.
func TestRolledFromOutside(t *testing.T) {
	for _, family := range []int{4, IPv6} {
		o := Options{Lab: plan.Lab{Family: family}, Rolled: []int{3}}
		l := upWith(t, o, "calico-ebpf", "calico-ebpf-dsr", "cilium-native", "ptp")
		for _, i := range standing(t, l) {
			for ports, path := range map[string]plan.Path{
				"40000 40015": {From: plan.External, To: plan.NodePort, Locality: plan.Remote},
				"41000 41015": {From: plan.External, To: plan.LoadBalancer},
			} {
				t.Run(fmt.Sprintf("IPv%d %s %s", family, i.Name, path), func(t *testing.T) {
					few := []netns.Setting{{Name: "net/ipv4/ip_local_port_range", Value: ports}}
					if err := netns.SetSysctls(i.External.NS, few); err != nil {
						t.Fatal(err)
					}
					rollFromOutside(t, l, i, path)
				})
			}
		}
	}
}

func rollFromOutside(t *testing.T, l *Lab, i *Instance, path plan.Path) {
	const backends = 3
	all := backends
	if strings.HasSuffix(i.Name.String(), "-dsr") {
		// The node that is called sees no answers, so that a port which once led to the other node goes on doing so. Two
		// backends are there.
		all = 2
	}
	client, servers, err := backendsOf(l, plan.Route{Variant: i.Name, Path: path, Servers: backends, Rolled: true})
	if err != nil {
		t.Fatal(err)
	}
	for n, e := range servers {
		answer(t, i, e, n)
	}
	address := net.JoinHostPort(servers[0].Address, fmt.Sprint(servers[0].Port))
	for out := range servers {
		if got := ask(t, i, client, address); len(got) < all {
			t.Errorf("before %d is out: %v", out, got)
		}
		b := control.Backend{Route: plan.Route{Variant: i.Name, Path: path, Servers: backends, Rolled: true}, Index: out}
		if err := l.Roll(t.Context(), b, false); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, i, client, address); got[out] > 0 {
			t.Errorf("without %d: %v", out, got)
		}
		if err := l.Roll(t.Context(), b, true); err != nil {
			t.Fatal(err)
		}
	}
}

// answer has a server tell its number to all that connect, until the end of the test.
func answer(t *testing.T, i *Instance, e control.Endpoint, number int) {
	t.Helper()
	var listener net.Listener
	err := i.Host(strings.TrimPrefix(e.Name, i.Name.String()+"/")).NS.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(e.ListenAddress, fmt.Sprint(e.ListenPort)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = c.Write([]byte{byte(number)})
				c.Close()
			}
		}
	}()
}

// ask connects often enough that each of three would be met, and returns who answered how often.
func ask(t *testing.T, i *Instance, client control.Endpoint, address string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	err := i.Host(strings.TrimPrefix(client.Name, i.Name.String()+"/")).NS.Do(func() error {
		for range 60 { // one of three is left out by chance once in 10^10
			c, err := net.DialTimeout("tcp", netip.MustParseAddrPort(address).String(), 2*time.Second)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(c) // to the end: who closes first keeps the port
			c.Close()
			if err != nil || len(b) != 1 {
				return fmt.Errorf("%d bytes, %w", len(b), err)
			}
			counts[int(b[0])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}
