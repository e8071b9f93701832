package nft_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// counted returns what the rules of Calico's table have counted.
func counted(t *testing.T, w walktest.World) []nft.Counter {
	t.Helper()
	list, err := nft.Counters(w["node"], nft.IPv4, policy.TableCalico)
	must(t, err)
	if len(list) == 0 {
		t.Fatal("Calico's table has no rule that counts")
	}
	return list
}

// TestPolicyHolds: a device that Calico does not know, and a source address that is not the pod's, get nowhere.
func TestPolicyHolds(t *testing.T) {
	w := newWorld(t, underlay("ab")) // not c
	if _, _, err := w.Ask("c", walktest.PodIP["a"]+":8080", walktest.Hasty); !walktest.IsTimeout(err) {
		t.Errorf("from an unknown device: %v, want no answer", err)
	}
	if _, _, err := w.Ask("a", walktest.PodIP["c"]+":8080", walktest.Hasty); !walktest.IsTimeout(err) {
		t.Errorf("to an unknown device: %v, want no answer", err)
	}
	dropped := func() (packets uint64) {
		for _, k := range counted(t, w) {
			if k.Chain == "raw-cali-PREROUTING" && k.Verdict == "drop" {
				packets += k.Packets
			}
		}
		return packets
	}
	if n := dropped(); n != 0 {
		t.Errorf("%d packets with their own address were dropped as false", n)
	}
	const stolen = "10.42.0.99"
	w.AddAddress(t, "a", stolen)
	_, _, _, err := w.Connect("a", net.Dialer{Timeout: walktest.Hasty, LocalAddr: &net.TCPAddr{IP: net.ParseIP(stolen)}}, walktest.PodIP["b"]+":8080")
	if !walktest.IsTimeout(err) {
		t.Errorf("with a false source address: %v, want no answer", err)
	}
	if dropped() == 0 {
		t.Error("nothing was dropped by the check of source addresses")
	}
}

// TestPoliciesAreWalkedOncePerConnection: the last policy counts connections, and established packets never come there.
func TestPoliciesAreWalkedOncePerConnection(t *testing.T) {
	const connections = 5
	n := underlay("abc")
	n.Calico.Policies, n.Calico.PoliciesUnselected = 4, 3
	w := newWorld(t, n)
	for range connections {
		_, _, err := w.Ask("a", walktest.PodIP["b"]+":8080", walktest.Patient)
		must(t, err)
	}
	if _, _, err := w.Ask("a", fmt.Sprintf("%s:%d", walktest.PodIP["b"], policy.DeniedPort), walktest.Hasty); !walktest.IsTimeout(err) {
		t.Errorf("to the denied port: %v, want no answer", err)
	}
	accepted, others := uint64(0), uint64(0)
	for _, k := range counted(t, w) {
		if !strings.HasPrefix(k.Chain, "filter-cali-pi-") || k.Verdict != "return" {
			continue
		}
		if k.Packets > 0 {
			accepted += k.Packets
		} else {
			others++
		}
	}
	if accepted != connections || others != 6 {
		t.Errorf("policies accepted %d of %d connections; %d policies accepted none, want 6", accepted, connections, others)
	}
}

// TestWalkOfAnEstablishedPacket: a packet of a standing connection is accepted in the sending pod's chain and meets
// nothing of nat, of policies and of the receiving pod's chain.
func TestWalkOfAnEstablishedPacket(t *testing.T) {
	const rounds = 50
	for _, vxlan := range []bool{false, true} {
		n := underlay("ab")
		n.Calico.VXLAN = vxlan
		w := newWorld(t, n)
		c, _, _, err := w.Connect("a", net.Dialer{Timeout: walktest.Patient}, walktest.PodIP["b"]+":8080")
		must(t, err)
		before := counted(t, w)
		buf := []byte{0}
		for range rounds {
			_, err := c.Write(buf)
			must(t, err)
			_, err = io.ReadFull(c, buf)
			must(t, err)
		}
		grown := map[string]uint64{}
		for i, k := range counted(t, w) {
			if k.Packets > before[i].Packets {
				grown[k.Chain+" "+k.Verdict] += k.Packets - before[i].Packets
			}
		}
		must(t, c.Close())
		for _, place := range []string{"filter-cali-fw-calia accept", "filter-cali-fw-calib accept", "mangle-cali-PREROUTING accept"} {
			if grown[place] < rounds {
				t.Errorf("VXLAN %v: %q counted %d packets, want at least %d", vxlan, place, grown[place], rounds)
			}
		}
		for place, packets := range grown {
			if strings.HasPrefix(place, "nat-") || strings.Contains(place, "cali-tw-") || strings.Contains(place, "cali-pr") {
				t.Errorf("VXLAN %v: %d established packets met %s", vxlan, packets, place)
			}
		}
	}
}
