package inspect

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

const (
	// dials is how often Dial connects to each address, dialTime how long one connection may take.
	dials, dialTime = 20, 300 * time.Millisecond
	// settleTime is how long an address may refuse: what listens there has only just been started.
	settleTime = 3 * time.Second
)

// Accept takes connections on a TCP port of all addresses until ctx ends, and closes each.
func Accept(ctx context.Context, port int) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // which ends Accept
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		_ = c.Close() // the client has its time
	}
}

// Dial connects to each address several times, to all of them at the same time.
func Dial(ctx context.Context, addresses []string) []netstate.Dialled {
	all := make([]netstate.Dialled, len(addresses))
	var wait sync.WaitGroup
	for i, to := range addresses {
		wait.Go(func() { all[i] = dialEach(ctx, to) })
	}
	wait.Wait()
	return all
}

func dialEach(ctx context.Context, to string) netstate.Dialled {
	d := netstate.Dialled{To: to, Failed: map[string]int{}}
	settled := time.Now().Add(settleTime)
	for n := 0; n < dials && ctx.Err() == nil; {
		began := time.Now()
		c, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", to)
		took := time.Since(began)
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0) // no connection stays in the tables
			_ = c.Close()
			d.Times = append(d.Times, int64(took))
			n++
			continue
		}
		if len(d.Times) == 0 && time.Now().Before(settled) {
			pause(ctx, dialTime-took)
			continue
		}
		d.Failed[reason(err)]++
		n++
		pause(ctx, dialTime/10-took)
	}
	slices.Sort(d.Times)
	return d
}

// reason is why a connection did not come about, in a word or two.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Timeout():
		return "timeout"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}
