package cilium

import (
	"net/netip"
	"strings"
	"testing"
)

// TestOptionsOfTwoFamilies lists all that is of another family than the node's address.
func TestOptionsOfTwoFamilies(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		o := Options{
			NodeIP: where.node(1), Gateway: where.other().gateway(0), Wire: "eth0", Pair: [2]string{"a", "b"},
			Masquerade: where.other().cluster,
		}
		err := o.check()
		for _, want := range []string{"NS is missing", "gateway is", "Masquerade is not " + where.String()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
	})
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("::ffff:10.0.0.1")} {
		if err := (Options{NodeIP: a}).check(); err == nil || !strings.Contains(err.Error(), "NodeIP is") {
			t.Errorf("node address %q: %v", a, err)
		}
	}
}

// TestOtherFamilyIsRefused tells a plane about addresses that it cannot serve.
func TestOtherFamilyIsRefused(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		n, other := newNode(Options{NodeIP: where.node(1)}), where.other()
		port := func(of numbering) netip.AddrPort { return netip.AddrPortFrom(of.node(1), 80) }
		for name, err := range map[string]error{
			"prefix":       n.SetIPCache(other.subnet(1), World, netip.Addr{}),
			"node address": n.SetNodeAddress(other.node(1), Host),
			"endpoint":     n.AddEndpoint(Endpoint{ID: 1, Identity: 300, IP: other.pod(0, 1), MAC: make([]byte, 6)}),
			"frontend":     n.SetService(Service{Proto: TCP, Frontend: port(other)}),
			"backend":      n.SetService(Service{Proto: TCP, Frontend: port(where), Backends: []netip.AddrPort{port(other)}}),
		} {
			if err == nil || !strings.Contains(err.Error(), where.String()) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestNetkitNeedsHostRouting: with legacy routing nothing would lead into the pod past its own program.
func TestNetkitNeedsHostRouting(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		n := newNode(Options{NodeIP: where.node(1), Legacy: true})
		err := n.AddEndpoint(Endpoint{ID: 1, Identity: 300, IP: where.pod(0, 1), MAC: make([]byte, 6), Netkit: true})
		if err == nil || !strings.Contains(err.Error(), "netkit device needs eBPF host routing") {
			t.Errorf("%v", err)
		}
	})
}
