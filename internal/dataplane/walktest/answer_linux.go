package walktest

import (
	"io"
	"net"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Answer listens in ns at a TCP address until the test ends. It sends the first byte of each connection back and closes the
// connection.
func Answer(t *testing.T, ns *netns.NS, address string) {
	t.Helper()
	var l net.Listener
	must(t, ns.Do(func() (err error) { l, err = net.Listen("tcp", address); return err }))
	serveConns(t, l, func(c net.Conn) { _, _ = io.CopyN(c, c, 1) })
}

// serveConns accepts connections of a listener until the test ends, serves them concurrently, and closes each afterwards.
func serveConns(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
}
