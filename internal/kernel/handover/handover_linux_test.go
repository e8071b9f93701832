package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair returns a client of a server in this process, and what the server's end came to.
func pair(t *testing.T) (*Client, chan error) {
	t.Helper()
	near, far, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(far) }()
	c, err := NewClient(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, ended
}

// echo answers on a TCP and a UDP port of lo with what it gets.
func echo(t *testing.T) (tcp, udp string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(b[:n], from)
		}
	}()
	return l.Addr().String(), u.LocalAddr().String()
}

// TestDial uses many connections at once: each must be the one that was asked for.
func TestDial(t *testing.T) {
	c, ended := pair(t)
	tcp, udp := echo(t)
	var all sync.WaitGroup
	for i := range 20 {
		network, address := "tcp4", tcp
		if i%2 == 1 {
			network, address = "udp4", udp
		}
		all.Go(func() {
			conn, err := c.Dial(t.Context(), network, address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if got := conn.RemoteAddr(); got.Network() != strings.TrimSuffix(network, "4") || got.String() != address {
				t.Errorf("%s %s is connected to %s %s", network, address, got.Network(), got)
			}
			sent := fmt.Sprintf("number %02d", i)
			got := make([]byte, len(sent))
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != sent {
				t.Errorf("sent %q, got %q, %v", sent, got, err)
			}
		})
	}
	all.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server: %v", err)
	}
	if _, err := c.Dial(t.Context(), "tcp4", tcp); err == nil {
		t.Error("a closed client dials")
	}
}

func TestDialFails(t *testing.T) {
	c, _ := pair(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	if _, err := c.Dial(t.Context(), "tcp4", address); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a port that nobody listens on: %v", err)
	}
	if _, err := c.Dial(t.Context(), "nonet", address); err == nil {
		t.Error("a network that there is not")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Dial(ctx, "tcp4", address); err == nil {
		t.Error("a context that is over")
	}
}

// TestServerGone: whoever waits is told, and whoever asks later.
func TestServerGone(t *testing.T) {
	near, far, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(near)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waits := make(chan error, 1)
	go func() {
		_, err := c.Dial(context.Background(), "tcp4", "127.0.0.1:1")
		waits <- err
	}()
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err == nil {
		t.Error("connected by nobody")
	}
	if _, err := c.Dial(context.Background(), "tcp4", "127.0.0.1:1"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("later: %v", err)
	}
}
