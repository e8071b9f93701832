package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

const (
	// longest bounds an exchange that must work. It is long because the machine may be busy. A long limit only delays a
	// failure.
	longest = 2 * time.Second
	// shortest is the least limit of an exchange that must work, after other exchanges have failed; see patience.
	shortest = 300 * time.Millisecond
	// impatience bounds an exchange that must fail.
	impatience = 500 * time.Millisecond
)

// answer is the size of a response, in bytes.
const answer = 100

// exchange is one request and response between two hosts.
type exchange struct {
	client *lab.Dialer
	server *netns.NS
	// bind is the server's own address. A UDP server on any address would reply from the address of the outgoing device.
	bind netip.Addr
	// dial is the server's address or its Service's.
	dial netip.AddrPort
	// listen is the server's port. 0 means any; the chosen port then replaces the port of dial.
	listen uint16
	// size is the size of the request, in bytes.
	size    int
	timeout time.Duration
}

// outcome has what both ends observed of an exchange.
type outcome struct {
	// seen is the client's address as the server sees it, local as the client sees it.
	seen, local netip.AddrPort
	// dialled is the port that the client dialled, listened the server's port. They differ if a Service translates.
	dialled, listened uint16
	err               error
}

// runTCP runs the exchange over a new connection. Both ends are closed when it returns, the client's end with a reset to
// avoid TIME_WAIT.
func (x exchange) runTCP(ctx context.Context) outcome {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	l, err := x.listenTCP(ctx)
	if err != nil {
		return outcome{err: fmt.Errorf("listen: %w", err)}
	}
	out := x.newOutcome(l.Addr())
	seen := make(chan outcome, 1)
	go func() { seen <- x.serveOnce(ctx, l) }()
	out.local, out.err = x.callServer(ctx, out.dialled)
	cancel()
	server := <-seen
	out.seen = server.seen
	if out.err == nil {
		out.err = server.err
	}
	return out
}

// listenTCP opens the server's listener.
func (x exchange) listenTCP(ctx context.Context) (l net.Listener, err error) {
	err = retryBind(ctx, func() error {
		return x.server.Do(func() (err error) {
			l, err = new(net.ListenConfig).Listen(ctx, x.network("tcp"), netip.AddrPortFrom(x.bind, x.listen).String())
			return err
		})
	})
	return l, err
}

// network returns the name of a protocol over the exchange's version of IP.
func (x exchange) network(protocol string) string {
	if x.bind.Is6() {
		return protocol + "6"
	}
	return protocol + "4"
}

// retryBind repeats bind while the port is in use, until ctx ends. A new child process has copies of all
// descriptors until its exec. Among them may be a listener that was just closed.
func retryBind(ctx context.Context, bind func() error) error {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		err := bind()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// newOutcome returns an outcome with the ports of the exchange. listening is the server's address, with the port that the
// system chose if x.listen is 0.
func (x exchange) newOutcome(listening net.Addr) outcome {
	at, _ := netip.ParseAddrPort(listening.String()) // package net returns valid addresses
	out := outcome{dialled: x.dial.Port(), listened: at.Port()}
	if x.listen == 0 {
		out.dialled = at.Port()
	}
	return out
}

// serveOnce accepts one connection, closes l, reads the request and sends the response.
func (x exchange) serveOnce(ctx context.Context, l net.Listener) outcome {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // wakes Accept
	defer stop()
	conn, err := l.Accept()
	if closed := l.Close(); err == nil && !errors.Is(closed, net.ErrClosed) {
		err = closed
	}
	if err != nil {
		return outcome{err: fmt.Errorf("accept: %w", err)}
	}
	defer closeQuietly(conn)
	out := outcome{seen: conn.RemoteAddr().(*net.TCPAddr).AddrPort()}
	if deadline, ok := ctx.Deadline(); ok {
		out.err = conn.SetDeadline(deadline)
	}
	if out.err == nil {
		_, out.err = io.CopyN(io.Discard, conn, int64(x.size))
	}
	if out.err == nil {
		_, out.err = conn.Write(make([]byte, answer))
	}
	return out
}

// callServer connects to the server by TCP, sends the request and reads the response. It returns the client's address.
func (x exchange) callServer(ctx context.Context, port uint16) (local netip.AddrPort, err error) {
	conn, err := x.client.Dial(ctx, x.network("tcp"), netip.AddrPortFrom(x.dial.Addr(), port).String())
	if err != nil {
		return local, err
	}
	defer closeQuietly(conn)
	local = conn.LocalAddr().(*net.TCPAddr).AddrPort()
	if deadline, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(deadline)
	}
	if err == nil {
		_, err = conn.Write(make([]byte, x.size))
	}
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, answer))
	}
	return local, errors.Join(err, conn.(*net.TCPConn).SetLinger(0))
}

// holdConnection keeps a connection open while use runs. use gets the client's address and a function round. round
// sends a byte and waits until the server has returned it.
func (x exchange) holdConnection(ctx context.Context, use func(client netip.AddrPort, round func() error) error) error {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	l, err := x.listenTCP(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var server sync.WaitGroup
	defer server.Wait()
	defer closeQuietly(l)
	server.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return // the client has failed
		}
		defer closeQuietly(conn)
		for b := make([]byte, 1); err == nil; {
			if _, err = conn.Read(b); err == nil {
				_, err = conn.Write(b)
			}
		}
	})
	conn, err := x.client.Dial(ctx, x.network("tcp"), netip.AddrPortFrom(x.dial.Addr(), x.newOutcome(l.Addr()).dialled).String())
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	deadline, _ := ctx.Deadline()
	if err := errors.Join(conn.SetDeadline(deadline), conn.(*net.TCPConn).SetLinger(0)); err != nil {
		return err
	}
	b := make([]byte, 1)
	return use(conn.LocalAddr().(*net.TCPAddr).AddrPort(), func() error {
		_, err := conn.Write(b)
		if err == nil {
			_, err = conn.Read(b)
		}
		return err
	})
}

// runUDP runs the exchange with one datagram in each direction.
func (x exchange) runUDP(ctx context.Context) outcome {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	var server *net.UDPConn
	err := retryBind(ctx, func() error {
		return x.server.Do(func() (err error) {
			server, err = net.ListenUDP(x.network("udp"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(x.bind, x.listen)))
			return err
		})
	})
	if err != nil {
		return outcome{err: fmt.Errorf("listen: %w", err)}
	}
	defer closeQuietly(server)
	out := x.newOutcome(server.LocalAddr())
	client, err := x.client.Dial(ctx, x.network("udp"), netip.AddrPortFrom(x.dial.Addr(), out.dialled).String())
	if err != nil {
		out.err = err
		return out
	}
	defer closeQuietly(client)
	out.local = client.LocalAddr().(*net.UDPAddr).AddrPort()
	out.seen, out.err = x.retryDatagram(ctx, client, server)
	return out
}

// attempts is how often a datagram is sent within the timeout of an exchange. UDP does not guarantee delivery, and
// a busy machine loses one datagram in thousands.
const attempts = 4

// retryDatagram repeats a request until its response arrives, at most attempts times. seen is the client's address at the
// server.
func (x exchange) retryDatagram(ctx context.Context, client net.Conn, server *net.UDPConn) (seen netip.AddrPort, err error) {
	for range attempts {
		deadline := time.Now().Add(x.timeout / attempts)
		if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
			deadline = d
		}
		if err := errors.Join(client.SetDeadline(deadline), server.SetDeadline(deadline)); err != nil {
			return seen, err
		}
		if seen, err = x.exchangeDatagram(client, server); !errors.Is(err, os.ErrDeadlineExceeded) {
			return seen, err
		}
	}
	return seen, err
}

// exchangeDatagram sends one request and one response.
func (x exchange) exchangeDatagram(client net.Conn, server *net.UDPConn) (seen netip.AddrPort, err error) {
	if _, err := client.Write(make([]byte, x.size)); err != nil {
		return seen, err
	}
	buf := make([]byte, 1<<16)
	n, seen, err := server.ReadFromUDPAddrPort(buf)
	if err != nil {
		return seen, fmt.Errorf("at the server: %w", err)
	}
	if n != x.size {
		return seen, fmt.Errorf("a datagram of %d bytes arrived with %d bytes", x.size, n)
	}
	if _, err := server.WriteToUDPAddrPort(buf[:answer], seen); err != nil {
		return seen, err
	}
	if n, err = client.Read(buf); err != nil {
		return seen, fmt.Errorf("at the client: %w", err)
	}
	if n != answer {
		return seen, fmt.Errorf("a response of %d bytes arrived with %d bytes", answer, n)
	}
	return seen, nil
}

// closeQuietly closes a socket after its exchange, when errors no longer matter.
func closeQuietly(c io.Closer) { _ = c.Close() }
