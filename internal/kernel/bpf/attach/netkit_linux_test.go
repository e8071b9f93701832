package attach

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestNetkit: a program at the peer lets a pod's packets out, one at the primary keeps the node's from it; both are
// taken off by Close.
func TestNetkit(t *testing.T) {
	drop := dropAll(t)
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pass_all", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	node, pod := bpftest.NewNS(t), bpftest.NewNS(t)
	a, b := netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("192.0.2.2/24")
	pair(t, node, pod, a, b)
	for _, tc := range []struct {
		end      Hook
		prog     *ebpf.Program
		from, to *netns.NS
		addr     netip.Addr
		without  bool
	}{
		{Peer, pass, pod, node, a.Addr(), false},
		{Primary, drop, node, pod, b.Addr(), true},
	} {
		t.Run(tc.end.String(), func(t *testing.T) {
			if sends(t, tc.from, tc.to, tc.addr) != tc.without {
				t.Error("it is not as it should be before")
			}
			c, err := Device(node, "nk1", tc.end, tc.prog)
			if err != nil {
				t.Fatal(err)
			}
			if sends(t, tc.from, tc.to, tc.addr) == tc.without {
				t.Error("the program is not there")
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if sends(t, tc.from, tc.to, tc.addr) != tc.without {
				t.Error("the program is still there")
			}
		})
	}
	if _, err := Device(node, "lo", Peer, pass); err == nil {
		t.Error("lo is no netkit device, and it was attached to")
	}
}

// pair makes a netkit pair between two namespaces, or skips the test where the kernel has none.
func pair(t *testing.T, node, pod *netns.NS, a, b netip.Prefix) {
	t.Helper()
	at, err := link.Open(node)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	in, err := link.Open(pod)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	err = at.Add(link.Netkit{Name: "nk1", Peer: "eth0", PeerIn: in, MTU: 1500})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("%v", err)
	}
	if err := errors.Join(err, at.Add(link.Address{Dev: "nk1", Addr: a}), in.Add(link.Address{Dev: "eth0", Addr: b})); err != nil {
		t.Fatal(err)
	}
}

// sends says whether a datagram from one namespace arrives at an address of another.
func sends(t *testing.T, from, to *netns.NS, addr netip.Addr) bool {
	t.Helper()
	var server, client *net.UDPConn
	bpftest.In(t, to, func() (err error) {
		server, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	})
	defer server.Close()
	bpftest.In(t, from, func() (err error) {
		client, err = net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	defer client.Close()
	if _, err := client.Write([]byte("x")); err != nil {
		return false // a drop on the way out is told
	}
	if err := server.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := server.Read(make([]byte, 1))
	return err == nil
}
