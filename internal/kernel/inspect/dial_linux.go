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
	// dials is how many connections Dial measures for each address. All but the first begin dialPause apart. dialTime is
	// the least timeout of these.
	dials, dialPause, dialTime = 20, 10 * time.Millisecond, 300 * time.Millisecond
	// settleTime is how long an address may refuse connections, because the program that listens there was just
	// started.
	settleTime = 3 * time.Second
)

// Accept accepts connections on a TCP port of all addresses until ctx ends, and closes each at once.
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
		_ = c.Close() // the client has measured already
	}
}

// Dial opens 20 TCP connections to each address, and measures each of them. It tests all addresses concurrently. The
// results are in the order of addresses.
func Dial(ctx context.Context, addresses []string) []netstate.Dialled {
	all := make([]netstate.Dialled, len(addresses))
	var wait sync.WaitGroup
	for i, to := range addresses {
		wait.Go(func() { all[i] = dialAddress(ctx, to) })
	}
	wait.Wait()
	return all
}

// dialAddress opens as many connections to an address as dials says, and measures each. It repeats the first connection
// until it succeeds, at most for settleTime. The other connections begin dialPause apart. Their timeout is three times
// the duration of the first, at least dialTime.
func dialAddress(ctx context.Context, to string) netstate.Dialled {
	d := netstate.Dialled{To: to, Failed: map[string]int{}}
	settled := time.Now().Add(settleTime)
	first, err := measureConnect(ctx, to, settleTime)
	for err != nil && ctx.Err() == nil && time.Now().Before(settled) {
		pause(ctx, dialTime/10)
		first, err = measureConnect(ctx, to, time.Until(settled))
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	done := func(took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			d.Failed[failureReason(err)]++
		} else {
			d.Times = append(d.Times, int64(took))
		}
	}
	done(first, err)
	for range dials - 1 {
		wait.Go(func() { done(measureConnect(ctx, to, max(dialTime, 3*first))) })
		pause(ctx, dialPause)
	}
	wait.Wait()
	slices.Sort(d.Times)
	return d
}

// measureConnect opens a TCP connection and closes it at once. It returns how long opening took, and fails after limit.
func measureConnect(ctx context.Context, to string, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	c, err := (&net.Dialer{Timeout: max(limit, time.Millisecond)}).DialContext(ctx, "tcp", to)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	_ = c.(*net.TCPConn).SetLinger(0) // no connection stays in the tables
	return took, c.Close()
}

// failureReason describes in a word or two why a connection failed.
func failureReason(err error) string {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Timeout():
		return netstate.Timeout
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}
