package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// dialLimit bounds one attempt to connect; dialPause is the time between two attempts.
	dialLimit = time.Second
	dialPause = 100 * time.Millisecond
	// portTries is how many local ports one attempt tries while they are in use.
	portTries = 16
)

// errNoPort means that no connection was tried.
var errNoPort = errors.New("not tried: all local ports are in use")

// Reach dials all addresses concurrently, each until it accepts a connection or limit is over. It writes a JSON object to w
// that maps each address without a connection to its most informative error.
func Reach(ctx context.Context, addresses []string, limit time.Duration, w io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	failed := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, address := range addresses {
		all.Go(func() {
			if err := dialUntilAccepted(ctx, address, newPortPicker(portRangeFile)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[address] = err.Error()
			}
		})
	}
	all.Wait()
	return json.NewEncoder(w).Encode(failed)
}

// portRangeFile contains the range of local ports that the kernel gives to clients.
const portRangeFile = "/proc/sys/net/ipv4/ip_local_port_range"

// newPortPicker returns a function that draws a random local port outside the kernel's range for clients. It reads this
// range from file. The function returns 0 if the range leaves no port. A dial before a node knows the Service leaves a
// conntrack entry without translation for two minutes. Trials never use the drawn ports, so such an entry cannot fail a
// trial.
func newPortPicker(file string) func() int {
	const lowest, highest = 1024, 65535
	first, last := 32768, 60999 // Linux' own
	if text, err := os.ReadFile(file); err == nil {
		_, _ = fmt.Sscan(string(text), &first, &last) // an unreadable file leaves the defaults
	}
	from, n := last+1, highest-last
	if n < first-lowest && n < 1000 { // node ports are in this range, but only our dials go to Services
		from, n = lowest, first-lowest
	}
	return func() int {
		if n <= 0 {
			return 0
		}
		return from + rand.IntN(n)
	}
}

// dialUntilAccepted dials address until it accepts a connection, then returns nil. draw returns the local ports to dial
// from. If ctx ends first, dialUntilAccepted returns the last of the errors with the highest errorRank.
func dialUntilAccepted(ctx context.Context, address string, draw func() int) error {
	pause := time.NewTicker(dialPause)
	defer pause.Stop()
	why := ctx.Err()
	for ctx.Err() == nil {
		conn, err := dialOnce(ctx, address, draw)
		if err == nil {
			return conn.Close()
		}
		if errorRank(err) >= errorRank(why) {
			why = err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return why
}

// errorRank returns how much an error shows about a path: 0 for nil, 1 for a missing local port, 2 for a timeout or a
// canceled dial, 3 for any other error.
func errorRank(err error) int {
	var slow net.Error
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNoPort):
		return 1
	case errors.Is(err, context.Canceled), errors.As(err, &slow) && slow.Timeout():
		return 2
	}
	return 3
}

// dialOnce dials from a port that draw returns, and from another if that port is in use. After portTries ports it
// returns errNoPort.
func dialOnce(ctx context.Context, address string, draw func() int) (net.Conn, error) {
	for range portTries {
		dialer := net.Dialer{Timeout: dialLimit, LocalAddr: &net.TCPAddr{Port: draw()}}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return conn, err
		}
	}
	return nil, errNoPort
}

// Answer listens on ports and closes every connection at once, until in or ctx ends. It writes the line answering to w once
// all ports listen. It fails if a port cannot be opened.
func Answer(ctx context.Context, ports []string, in io.Reader, w io.Writer) error {
	var listeners []net.Listener
	var all sync.WaitGroup
	defer all.Wait()
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // Accept says so
		}
	}()
	var config net.ListenConfig
	for _, port := range ports {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort("", port))
		if err != nil {
			return fmt.Errorf("take connections: %w", err)
		}
		listeners = append(listeners, l)
		all.Go(func() { dropConnections(l) })
	}
	if _, err := io.WriteString(w, answering); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// dropConnections accepts connections of l and closes each at once, until l is closed.
func dropConnections(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_ = conn.Close() // the connection carries no data
		}
	}
}

// FreePorts writes a JSON list of the free ones among ports. A port counts as free if both it and the next higher port are
// free, for TCP and UDP.
func FreePorts(ctx context.Context, ports []int, w io.Writer) error {
	free := []int{}
	for _, n := range ports {
		if portFree(ctx, n) && portFree(ctx, n+1) {
			free = append(free, n)
		}
	}
	return json.NewEncoder(w).Encode(free)
}

// portFree reports whether a server can listen on a port, for TCP and UDP, on every address.
func portFree(ctx context.Context, port int) bool {
	var config net.ListenConfig
	address := net.JoinHostPort("", strconv.Itoa(port))
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	d, err := config.ListenPacket(ctx, "udp", address)
	return err == nil && d.Close() == nil
}
