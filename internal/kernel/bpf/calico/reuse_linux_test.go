package calico

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestPortUsedAgainFromOutside has a client use one port twice for a node port whose first backend leaves in between.
// The node that it calls begins a new flow if it saw both sides end, and so does the backend's; with DSR no answer
// passes the former, and then the question goes to the node of the first backend again, to a pod there.
func TestPortUsedAgainFromOutside(t *testing.T) { both(t, testPortUsedAgainFromOutside) }

func testPortUsedAgainFromOutside(t *testing.T, p *plan) {
	for _, dsr := range []bool{false, true} {
		t.Run(map[bool]string{false: "tunnel", true: "dsr"}[dsr], func(t *testing.T) {
			w := newWorld(t, p, "vxlan.calico", dsr)
			defer w.explain(t)
			for _, pod := range w.pods {
				introduce(t, pod.NS, p.anywhere(7000))
			}
			port := uint16(30001)
			for _, c := range []struct {
				name       string
				node       int // that is called
				first, now int // pods
			}{
				{"both on another node", 1, 0, 1},
				{"both on this node", 0, 0, 1},
				{"from this node to another", 0, 0, 2},
				{"from another node to this", 0, 2, 0},
			} {
				for _, reset := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s,reset=%v", c.name, reset), func(t *testing.T) {
						port++
						front, from := netip.AddrPortFrom(w.nodes[c.node].IP, port), netip.AddrPortFrom(w.client.IP, port+10000)
						w.serveAt(t, front, c.first)
						if saw, err := w.meet(t.Context(), from, front, reset); err != nil || saw != w.pods[c.first].IP {
							t.Fatalf("at first: %s, %v", saw, err)
						}
						w.serveAt(t, front, c.now)
						if dsr && c.first == 2 {
							w.checkRefused(t, from, front)
							return
						}
						if saw, err := w.meet(t.Context(), from, front, reset); err != nil || saw != w.pods[c.now].IP {
							t.Errorf("again: %s, want %s; %v", saw, w.pods[c.now].IP, err)
						}
					})
				}
			}
		})
	}
}

// checkRefused wants an opener to be dropped at the second node, which has no pod for it.
func (w *world) checkRefused(t *testing.T, from, front netip.AddrPort) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bpftest.Patience)
	defer cancel()
	before := w.refused(t)
	over := make(chan error, 1)
	go func() {
		_, err := w.meet(ctx, from, front, true)
		over <- err
	}()
	for w.refused(t) == before && ctx.Err() == nil {
	}
	cancel()
	if err := <-over; err == nil || w.refused(t) == before {
		t.Errorf("the second node did not drop the opener: %v", err)
	}
}

// refused is how many packets the second node has dropped because the service has no backend there.
func (w *world) refused(t *testing.T) uint64 {
	t.Helper()
	list, err := w.planes[1].Counters()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(c attach.Counter) bool { return c.Outcome == "service has no backend" })
	return list[i].Packets
}

// serveAt makes one pod the only one behind a node port, at both nodes.
func (w *world) serveAt(t *testing.T, front netip.AddrPort, pod int) {
	t.Helper()
	backend := []netip.AddrPort{netip.AddrPortFrom(w.pods[pod].IP, 7000)}
	for i, plane := range w.planes {
		s := Service{Frontend: front, Proto: TCP}
		if i == pod/2 {
			s.Local = backend
		} else {
			s.Remote = backend
		}
		if err := plane.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
}

// introduce has a server tell its own address to whoever connects, and close.
func introduce(t *testing.T, ns *netns.NS, at netip.AddrPort) {
	t.Helper()
	var l net.Listener
	bpftest.In(t, ns, func() (err error) { l, err = net.Listen("tcp", at.String()); return err })
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.LocalAddr())
			c.Close()
		}
	}()
}

// meet connects from the client's own port and returns who answered. The server closes first, so that the port is free
// again once the server's side knows of the client's; or at once, if the client ends by a reset.
func (w *world) meet(ctx context.Context, from, to netip.AddrPort, reset bool) (netip.Addr, error) {
	var c net.Conn
	d := net.Dialer{Timeout: bpftest.Patience, LocalAddr: net.TCPAddrFromAddrPort(from)}
	for deadline := time.Now().Add(bpftest.Patience); ; {
		err := w.client.NS.Do(func() (err error) { c, err = d.DialContext(ctx, "tcp", to.String()); return err })
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return netip.Addr{}, err
		}
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(bpftest.Patience))
	b, err := io.ReadAll(c)
	if err != nil {
		return netip.Addr{}, err
	}
	if reset {
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			return netip.Addr{}, err
		}
	}
	who, err := netip.ParseAddrPort(string(b))
	return who.Addr(), err
}
