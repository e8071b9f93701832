package load

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestSocketDropsAreCounted makes the receive buffer so small that a burst overflows it: what the ledger misses and what
// the socket says that it turned away are about the same datagrams. A thread that comes late reads one of the two later.
func TestSocketDropsAreCounted(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, MessageSize: 1400}})
	o.Window = 300 * time.Millisecond
	eventually(t, 5, func() string {
		server, client := pair(t, o)
		for _, w := range server.workers() {
			if err := sock.SetReceiveBuffer(w.fd, 1); err != nil { // the kernel makes it a page or two
				t.Fatal(err)
			}
		}
		serving, loading := start(t.Context(), server), start(t.Context(), client)
		c, s := wait(t, loading, 1)[0], wait(t, serving, 1)[0]
		if c.err != nil || s.err != nil {
			t.Fatal(c.err, s.err)
		}
		d := s.o.Datagrams
		if d == nil || d.SocketDrops == nil {
			t.Fatalf("the socket says nothing: %+v", d)
		}
		if c.o.Datagrams != nil {
			t.Error("the sender has datagrams")
		}
		if apart := math.Abs(float64(d.Lost) - float64(*d.SocketDrops)); d.Lost == 0 || apart > 0.1*float64(d.Lost) {
			return fmt.Sprintf("lost %d of %d, the socket turned away %d: the two should be about the same, and not nothing", d.Lost, d.Expected, *d.SocketDrops)
		}
		return ""
	})
}

// TestMemoryOf reads back what was set: the kernel doubles it for its own overhead.
func TestMemoryOf(t *testing.T) {
	needNamespace(t)
	server := prepare(t, control.SideServer, options(plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}))
	server.roster.mu.Lock()
	fd := server.roster.fds[0]
	server.roster.mu.Unlock()
	m, err := sock.MemoryOf(fd)
	if err != nil || m.ReceiveBuffer != 2*receiveBuffer || m.Drops != 0 {
		t.Errorf("got %+v, %v", m, err)
	}
}
