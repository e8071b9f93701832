package load

import (
	"encoding/binary"
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// Ping: ICMP echo with our own sequence numbers. The far kernel answers, so the server's side has no thread and only
// keeps its window. An echo without a reply within the timeout counts as a timeout.

// echoHeader is the size of an ICMP echo header in bytes.
const echoHeader = 8

// pinger is the client of ping, on one thread.
type pinger struct {
	echo            sock.Echo
	request, answer []byte
	identifier      uint16
	sequence        uint16
	due             int64 // scheduled time of the next echo
}

func openPinger(w *worker) (flow, error) {
	t := w.trial
	to := sock.NewAddr(netip.AddrPortFrom(t.address, 0), sock.Family(t.address))
	echo, err := sock.OpenEcho(&to)
	if err != nil {
		return nil, err
	}
	t.ownDescriptor(echo.FD)
	w.fd = echo.FD
	if err := sock.SetTimeouts(echo.FD, t.callTimeout()); err != nil {
		return nil, err
	}
	p := &pinger{echo: echo, identifier: echo.Identifier}
	if echo.Raw {
		p.identifier = uint16(t.clock.Offset>>10) + uint16(w.index)
	}
	p.request = incompressibleBytes(echoHeader + t.traits.Message)
	p.answer = make([]byte, 1<<16)
	w.each = size{sent: uint64(t.traits.Message), received: uint64(t.traits.Message)}
	w.hist.rtt = w.newTimes()
	return p, nil
}

func (p *pinger) step(w *worker) bool {
	if interval := int64(w.trial.traits.Interval); interval > 0 {
		now := w.trial.now()
		if now < p.due {
			w.sleepUntil(p.due)
			return true
		}
		p.due = max(p.due+interval, now)
	}
	p.sequence++
	p.echo.Ask(p.request, p.identifier, p.sequence)
	w.last = w.trial.now()
	if _, e := sock.Send(w.fd, p.request, 0); e != 0 {
		return w.survivesDatagramError(e)
	}
	return w.awaitReply(p.answer, p)
}

// isReply reports whether a packet is the reply to the latest request.
func (p *pinger) isReply(b []byte) bool {
	if p.echo.Raw && len(b) > 0 && b[0]>>4 == 4 {
		b = b[min(int(b[0]&15)*4, len(b)):] // raw IPv4 sockets see the header
	}
	return len(b) == len(p.request) && b[0] == p.echo.Reply &&
		binary.BigEndian.Uint16(b[4:]) == p.identifier && binary.BigEndian.Uint16(b[6:]) == p.sequence
}
