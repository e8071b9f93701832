package ipvs

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func fresh(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	// Where there is no address at all, IPVS takes every address for a broadcast.
	h, err := link.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Up(link.Loopback); err != nil {
		t.Fatal(err)
	}
	return ns
}

// apply skips the test where the kernel has no IPVS. In the guest of make test-vm it has.
func apply(t *testing.T, ns *netns.NS, servers []Server) {
	t.Helper()
	err := Apply(ns, servers)
	if errors.Is(err, errors.ErrUnsupported) {
		if advice.Of(err) == "" || !strings.Contains(err.Error(), "CONFIG_IP_VS") {
			t.Errorf("no way out, or no option: %v", err)
		}
		t.Skipf("%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// TestKernelHasWhatWasApplied, after each of several changes, and in its own namespace alone.
func TestKernelHasWhatWasApplied(t *testing.T) {
	ns, other := fresh(t), fresh(t)
	for _, servers := range [][]Server{
		{{Protocol: TCP, Addr: addr("192.0.2.1:80"), Backends: []netip.AddrPort{addr("10.1.0.2:8080"), addr("10.1.0.3:8080")}},
			{Protocol: UDP, Addr: addr("192.0.2.1:80"), Affinity: 3 * time.Hour, Backends: []netip.AddrPort{addr("10.1.0.2:8080")}}},
		{{Protocol: TCP, Addr: addr("192.0.2.1:80"), Affinity: time.Minute, Backends: []netip.AddrPort{addr("10.1.0.3:8080"), addr("10.1.0.4:8080")}}},
		{{Protocol: TCP, Addr: addr("[2001:db8::1]:80"), Backends: []netip.AddrPort{addr("[fd00::2]:8080")}},
			{Protocol: TCP, Addr: addr("192.0.2.1:80")}},
		nil,
	} {
		apply(t, ns, servers)
		list, err := List(ns)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := shown(list), shown(servers); !slices.Equal(got, want) {
			t.Errorf("the kernel has %q, want %q", got, want)
		}
		if list, err := List(other); err != nil || len(list) > 0 {
			t.Errorf("the other namespace has %v, %v", list, err)
		}
	}
}

// shown is what is compared, in order.
func shown(list []Server) []string {
	var lines []string
	for _, s := range list {
		var backends []string
		for _, b := range s.Backends {
			backends = append(backends, b.String())
		}
		slices.Sort(backends)
		lines = append(lines, s.String()+" "+s.Affinity.String()+" "+strings.Join(backends, ","))
	}
	slices.Sort(lines)
	return lines
}
