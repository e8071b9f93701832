package bpftest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Patience is how long traffic may take before it counts as lost.
const Patience = 3 * time.Second

// Server answers TCP and UDP on one port: it sends the client's address on a line, and then what it receives.
type Server struct {
	tcp net.Listener
	udp net.PacketConn
}

// Serve starts a Server inside ns for the duration of the test. The Server listens at the address and port at.
func Serve(t *testing.T, ns *netns.NS, at netip.AddrPort) {
	t.Helper()
	s := &Server{}
	family := "4"
	if at.Addr().Is6() {
		family = "6"
	}
	In(t, ns, func() (err error) {
		if s.tcp, err = net.Listen("tcp"+family, at.String()); err != nil {
			return err
		}
		s.udp, err = net.ListenPacket("udp"+family, at.String())
		return err
	})
	t.Cleanup(func() { s.tcp.Close(); s.udp.Close() })
	go s.serveTCP()
	go s.serveUDP()
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			fmt.Fprintln(c, c.RemoteAddr())
			io.Copy(c, c)
		}()
	}
}

func (s *Server) serveUDP() {
	b := make([]byte, 65536)
	for {
		n, from, err := s.udp.ReadFrom(b)
		if err != nil {
			return
		}
		s.udp.WriteTo(append([]byte(from.String()+"\n"), b[:n]...), from)
	}
}

// Exchange sends size random bytes from ns to the server at addr, in two rounds. network is tcp4, tcp6, udp4 or udp6.
// It fails unless the server returns the same bytes. It returns the client's address as the server saw it.
func Exchange(ns *netns.NS, network string, addr netip.AddrPort, size int) (netip.AddrPort, error) {
	var c net.Conn
	err := ns.Do(func() (err error) {
		d := net.Dialer{Timeout: Patience}
		c, err = d.Dial(network, addr.String())
		return err
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer c.Close()
	return Converse(c, size)
}

// Converse sends size random bytes over an open connection to a Server, in two rounds. It fails unless the server returns
// the same bytes. It returns the client's address as the server saw it.
func Converse(c net.Conn, size int) (netip.AddrPort, error) {
	c.SetDeadline(time.Now().Add(Patience))
	sent := make([]byte, size)
	rand.Read(sent)
	// Two rounds, to include packets of an established flow.
	var saw netip.AddrPort
	for round := range 2 {
		if network := c.LocalAddr().Network(); network == "udp" || round == 0 {
			saw = netip.AddrPort{}
		}
		got := make(chan error, 1)
		go func() { _, err := c.Write(sent); got <- err }()
		answer := []byte{}
		b := make([]byte, 65536)
		for {
			n, err := c.Read(b)
			if err != nil {
				return saw, fmt.Errorf("round %d: after %d of %d bytes: %w", round, len(answer), size, err)
			}
			answer = append(answer, b[:n]...)
			if !saw.IsValid() {
				line, rest, found := bytes.Cut(answer, []byte("\n"))
				if !found {
					continue
				}
				if saw, err = netip.ParseAddrPort(string(line)); err != nil {
					return saw, err
				}
				answer = rest
			}
			if len(answer) >= size {
				break
			}
		}
		if err := <-got; err != nil {
			return saw, err
		}
		if !bytes.Equal(answer, sent) {
			return saw, fmt.Errorf("round %d: %d bytes came back changed", round, len(answer))
		}
	}
	return saw, nil
}
