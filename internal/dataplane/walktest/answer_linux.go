package walktest

import (
	"io"
	"net"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Answer serves single bytes in ns at a TCP address, for the time of the test: it sends the first byte of a connection back and
// closes it.
func Answer(t *testing.T, ns *netns.NS, address string) {
	t.Helper()
	var l net.Listener
	must(t, ns.Do(func() (err error) { l, err = net.Listen("tcp", address); return err }))
	answer(t, l, func(c net.Conn) { _, _ = io.CopyN(c, c, 1) })
}

// answer takes the connections of a listener for the time of the test, and closes each after it was served.
func answer(t *testing.T, l net.Listener, serve func(net.Conn)) {
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
