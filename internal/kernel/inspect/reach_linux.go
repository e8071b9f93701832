package inspect

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// otherAnswers tests what else a host answers whose UDP port is silent. It tries a TCP connection to that port, which
// the host may also refuse, and an ICMP echo. It returns what was answered, as words for an error.
func otherAnswers(ctx context.Context, to netip.AddrPort) (answered []string) {
	if _, err := measureConnect(ctx, to.String(), time.Second); err == nil || errors.Is(err, unix.ECONNREFUSED) {
		answered = append(answered, "a connection")
	}
	if answersEcho(to.Addr()) {
		answered = append(answered, "an echo")
	}
	return answered
}

// answersEcho reports whether an address answers one of three ICMP echo requests. It returns false without the right
// to send them.
func answersEcho(at netip.Addr) bool {
	to := sock.NewAddr(netip.AddrPortFrom(at, 0), sock.Family(at))
	e, err := sock.OpenEcho(&to)
	if err != nil {
		return false
	}
	defer sock.Close(e.FD)
	if sock.SetTimeouts(e.FD, tryTime) != nil {
		return false
	}
	const identifier = 0xc91b // of a raw socket; others have their own
	ask, answer := make([]byte, 8), make([]byte, 128)
	for n := range tries {
		e.Ask(ask, identifier, uint16(n))
		if _, no := sock.Send(e.FD, ask, 0); no != 0 {
			continue
		}
		if got, no := sock.Recv(e.FD, answer, 0); no == 0 && got > 0 {
			return true // the socket only receives replies of this address
		}
	}
	return false
}
