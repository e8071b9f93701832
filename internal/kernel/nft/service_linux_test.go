package nft_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// TestServices holds what a backend sees on every way to a Service.
func TestServices(t *testing.T) {
	w := newWorld(t, services())
	tests := []struct {
		way      string
		from     string
		to       string
		sees, is string
	}{
		{"pod to cluster address: source kept", "b", "10.43.0.10:80", walktest.PodIP["b"], "a"},
		{"pod to cluster address, routed backend: source kept", "b", "10.43.0.14:80", walktest.PodIP["b"], "d"},
		{"pod to itself through the service: masqueraded", "b", "10.43.0.11:80", walktest.NodeIP, "b"},
		{"another pod to that service: source kept", "a", "10.43.0.11:80", walktest.PodIP["a"], "b"},
		{"node to cluster address: the node's", "node", "10.43.0.10:80", walktest.NodeIP, "a"},
		{"node to cluster address, backend behind a device with an address: masqueraded to it", "node", "10.43.0.14:80", walktest.GatewayIP, "d"},
		{"outside to node port: masqueraded", "client", walktest.NodeIP + ":30010", walktest.NodeIP, "a"},
		{"outside to node port, device with an address: masqueraded to it", "client", walktest.NodeIP + ":30014", walktest.GatewayIP, "d"},
		{"outside to node port, policy Local: source kept", "client", walktest.NodeIP + ":30015", walktest.ClientIP, "a"},
		{"pod to node port, policy Local: source kept", "b", walktest.NodeIP + ":30015", walktest.PodIP["b"], "a"},
		{"node to its own node port, policy Local: masqueraded", "node", walktest.NodeIP + ":30015", walktest.NodeIP, "a"},
		{"pod to load balancer address: masqueraded", "b", "203.0.113.2:80", walktest.NodeIP, "a"},
		{"pod to pod, no service: source kept", "a", walktest.PodIP["b"] + ":8080", walktest.PodIP["a"], "b"},
		{"pod to outside: nobody masquerades without a CNI", "a", walktest.ClientIP + ":8080", walktest.PodIP["a"], "client"},
	}
	for _, tt := range tests {
		sees, is, err := w.Ask(tt.from, tt.to, walktest.Patient)
		if err != nil || sees != tt.sees || is != tt.is {
			t.Errorf("%s: %s to %s: %q sees %q, %v; want %q to see %q", tt.way, tt.from, tt.to, is, sees, err, tt.is, tt.sees)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	w := newWorld(t, services())
	for _, way := range []struct{ what, from, to string }{
		{"a service without endpoints", "a", "10.43.0.12:80"},
		{"a service without endpoints", "node", "10.43.0.12:80"},
		{"its node port", "client", walktest.NodeIP + ":30012"},
		{"its node port", "a", walktest.NodeIP + ":30012"},
		{"a port that a service does not have", "a", "10.43.0.10:81"},
		{"a port that a service does not have", "node", "10.43.0.10:81"},
	} {
		if _, _, err := w.Ask(way.from, way.to, walktest.Patient); !walktest.IsRefused(err) {
			t.Errorf("%s to %s, %s: %v, want refused", way.from, way.to, way.what, err)
		}
	}
	for _, way := range []struct{ what, from, to string }{
		// So that a load balancer tries another node.
		{"a node port without local endpoints", "client", walktest.NodeIP + ":30016"},
		{"a cluster address that nobody has", "a", "10.43.99.99:80"},
	} {
		if _, _, err := w.Ask(way.from, way.to, walktest.Hasty); !walktest.IsTimeout(err) {
			t.Errorf("%s to %s, %s: %v, want no answer", way.from, way.to, way.what, err)
		}
	}
}

// TestNodePortsOfOneAddress: the mode serves them at the address that it was told alone.
func TestNodePortsOfOneAddress(t *testing.T) {
	if _, _, err := newWorld(t, services()).Ask("d", walktest.GatewayIP+":30010", walktest.Patient); !walktest.IsRefused(err) {
		t.Errorf("at another address of the node: %v, want refused", err)
	}
}

// TestShares counts who answers 300 connections. The bound on chi-squared with 2 degrees of freedom is passed by chance
// once in two million runs.
func TestShares(t *testing.T) {
	const n, bound = 300, 29.0
	w := newWorld(t, services())
	got := map[string]float64{}
	for range n {
		_, is, err := w.Ask("d", "10.43.0.13:80", walktest.Patient)
		must(t, err)
		got[is]++
	}
	chi := 0.0
	for _, pod := range []string{"a", "b", "c"} {
		d := got[pod] - n/3
		chi += d * d / (n / 3)
	}
	t.Logf("shares %v, chi-squared %.1f", got, chi)
	if chi > bound || len(got) != 3 {
		t.Errorf("shares %v: chi-squared %.1f is above %.1f", got, chi, bound)
	}
}

func TestAffinity(t *testing.T) {
	w := newWorld(t, services())
	for _, from := range []string{"d", "client", "node"} {
		to := "10.43.0.17:80"
		if from == "client" {
			to = walktest.NodeIP + ":30017"
		}
		_, first, err := w.Ask(from, to, walktest.Patient)
		must(t, err)
		for range 20 {
			if _, is, err := w.Ask(from, to, walktest.Patient); err != nil || is != first {
				t.Fatalf("%s: after %s, %s answers: %v", from, first, is, err)
			}
		}
	}
}

// TestServicesOfCalico is TestServices' heart with Calico's table behind kube-proxy's.
func TestServicesOfCalico(t *testing.T) {
	w := newWorld(t, underlay("abc"))
	for _, tt := range []struct{ from, to, sees string }{
		{"a", walktest.ClientIP + ":8080", walktest.NodeIP},
		{"a", walktest.PodIP["b"] + ":8080", walktest.PodIP["a"]},
		{"b", "10.43.0.10:80", walktest.PodIP["b"]},
		{"b", "10.43.0.11:80", walktest.NodeIP},
		{"client", walktest.NodeIP + ":30010", walktest.NodeIP},
		{"client", walktest.NodeIP + ":30015", walktest.ClientIP},
		{"node", walktest.PodIP["a"] + ":8080", walktest.NodeIP},
		{"node", "10.43.0.10:80", walktest.NodeIP},
		{"a", walktest.NodeIP + ":8080", walktest.PodIP["a"]},
	} {
		if sees, is, err := w.Ask(tt.from, tt.to, walktest.Patient); err != nil || sees != tt.sees {
			t.Errorf("%s to %s: %q sees %q, %v; want %q", tt.from, tt.to, is, sees, err, tt.sees)
		}
	}
	if _, _, err := w.Ask("a", "10.43.0.12:80", walktest.Patient); !walktest.IsRefused(err) {
		t.Errorf("a service without endpoints: %v, want refused", err)
	}
}

// TestLoadingTime logs what programming ten thousand Services costs; it is a result of the benchmark, not of this test.
// That all of them stand is.
func TestLoadingTime(t *testing.T) {
	const n, endpoints = 10000, 5
	w := newWorld(t, policy.Node{})
	c := service.Config{
		ClusterCIDR: netip.MustParsePrefix("10.128.0.0/12"), ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), NodePortAddr: netip.MustParseAddr(walktest.NodeIP),
	}
	pod := netip.MustParseAddr("10.128.0.1")
	for i := range n {
		s := walktest.Service(fmt.Sprintf("s-%d", i), 1, "")
		s.VIP, s.NodePort = netip.AddrFrom4([4]byte{10, 43, byte(1 + i>>8), byte(i)}), uint16(30000+i)
		for k := range endpoints {
			s.Endpoints = append(s.Endpoints, service.Endpoint{Addr: netip.AddrPortFrom(pod, walktest.Port), Local: k == 0})
			pod = pod.Next()
		}
		c.Services = append(c.Services, s)
	}
	last := &c.Services[n-1]
	last.Endpoints = walktest.Service("", 0, "abc").Endpoints
	began := time.Now()
	table := service.NFTables(c)
	made := time.Now()
	must(t, nft.Load(t.Context(), w["node"], table))
	t.Logf("%d Services with %d endpoints and a node port each: %d chains; table made in %v, programmed in %v",
		n, endpoints, len(table.Chains()), made.Sub(began).Round(time.Millisecond), time.Since(made).Round(time.Millisecond))
	for set, want := range map[string]int{service.MapServiceIPs: n, service.MapServiceNodePorts: n, service.SetClusterIPs: n} {
		if got, err := nft.Elements(w["node"], nft.IPv4, service.TableNFT, set); err != nil || got != want {
			t.Errorf("%s holds %d elements, want %d: %v", set, got, want, err)
		}
	}
	for _, way := range [][2]string{{"d", netip.AddrPortFrom(last.VIP, 80).String()}, {"client", fmt.Sprintf("%s:%d", walktest.NodeIP, last.NodePort)}} {
		if _, is, err := w.Ask(way[0], way[1], walktest.Patient); err != nil || is != "a" && is != "b" && is != "c" {
			t.Errorf("the last Service at %s is answered by %q: %v", way[1], is, err)
		}
	}
}
