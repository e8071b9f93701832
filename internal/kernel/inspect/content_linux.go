package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

const (
	// messages is how many datagrams of each size are sent. paceTime is their interval, long enough for a link of 100
	// Mbit/s.
	messages, paceTime = 1024, time.Millisecond
	// bareMessages is how many more datagrams are sent without a checksum.
	bareMessages = 512
	// smallMessage is the length of a small message, in bytes.
	smallMessage = 128
	// lateTime is how long to wait for the last answers: a busy machine answers late, which is not a loss.
	lateTime = time.Second
	// socketRoom is the size of a socket's receive buffer in bytes. It is so large that a process loses no datagrams
	// while it waits for a CPU.
	socketRoom = 4 << 20
	// blocks is the largest number of large parts of a stream that are sent in each direction. blockTime bounds the time
	// for sending them.
	blocks, blockTime = 256, 2 * time.Second
	// words is how many small parts are sent before the large parts, each in its own packet. They are sent too slowly to
	// overflow a queue, so a retransmission means that the path loses packets.
	words = 512
	// blockLength is the length of a large part in bytes.
	blockLength = 1 << 16
)

// enlargeBuffer requests a large receive buffer, and makes the socket report how many datagrams did not fit into it.
func enlargeBuffer(conn *net.UDPConn) error {
	return withSocket(conn, func(fd int) error {
		_ = sock.SetReceiveBuffer(fd, socketRoom) // as large as permitted
		return os.NewSyscallError("setsockopt RXQ_OVFL", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1))
	})
}

// setNoChecksum makes a socket send datagrams without a checksum if on is true, with one otherwise. The socket also
// accepts datagrams without a checksum, which IPv6 does not do by default.
func setNoChecksum(conn *net.UDPConn, on bool) error {
	value := 0
	if on {
		value = 1
	}
	return withSocket(conn, func(fd int) error {
		return os.NewSyscallError("setsockopt NO_CHECK", errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, value),
			unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, value), unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1)))
	})
}

// withSocket calls do with the file descriptor of a connection, and returns the error of do.
func withSocket(conn syscall.Conn, do func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

// Content exchanges datagrams and a TCP stream with an Echo, and counts what was lost or changed in each direction.
// It sends three series of datagrams: small ones, ones that make packets of length bytes, and ones without a checksum. It
// also measures how long connections take. It fails if the Echo does not answer.
func Content(ctx context.Context, to netip.AddrPort, mark []byte, length int) (netstate.Content, error) {
	a, err := dialEcho(ctx, to, mark)
	if err != nil {
		return netstate.Content{}, err
	}
	defer a.conn.Close()
	if err := errors.Join(enlargeBuffer(a.conn), a.awaitFirstAnswer(ctx)); err != nil {
		return netstate.Content{}, err
	}
	var c netstate.Content
	if c.Small, err = a.exchangeDatagrams(ctx, kindCheck, messages, smallMessage); err != nil {
		return c, err
	}
	if c.Large, err = a.exchangeDatagrams(ctx, kindCheck, messages, max(length-a.over, smallMessage)); err != nil {
		return c, err
	}
	own, err := a.deviceMTU()
	if err == nil {
		err = setNoChecksum(a.conn, true)
	}
	if err == nil {
		c.Bare, err = a.exchangeDatagrams(ctx, kindBare, bareMessages, max(min(own, most)-a.over, smallMessage))
	}
	if err != nil {
		return c, err
	}
	c.Dials = dialAddress(ctx, to.String())
	if len(c.Dials.Times) > 0 {
		c.Words, c.Blocks, err = a.exchangeStream(ctx, to)
	}
	return c, err
}

// exchangeDatagrams sends count questions of length bytes, one every paceTime. kind is kindCheck or kindBare. It
// returns how many were lost or changed in each direction. It knows that from the Echo's counts and from the answers.
func (a *asker) exchangeDatagrams(ctx context.Context, kind byte, count, length int) (e netstate.Exchange, err error) {
	before, err := a.askCounts(nil)
	if err != nil {
		return e, err
	}
	first := a.number + 1
	var answered, wrong, overrun atomic.Int64
	began, done := time.Now(), make(chan error, 1)
	if err := a.conn.SetReadDeadline(began.Add(time.Duration(count)*paceTime + lateTime + a.trip)); err != nil {
		return e, err
	}
	go func() {
		for answered.Load() < int64(count) {
			r, err := receiveDatagram(a.conn, a.buf)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				done <- nil
				return
			case isICMPError(err):
				continue
			case err != nil:
				done <- err
				return
			}
			overrun.Store(max(overrun.Load(), int64(r.overrun)))
			d, filled, err := decodeDatagram(a.mark, a.buf[:r.n])
			switch {
			case err != nil || d.kind != kindAnswer || d.number-first >= uint32(count):
				if err == nil { // an answer to an earlier question
					continue
				}
				wrong.Add(1)
			case !isPadding(d.number, filled):
				wrong.Add(1)
			}
			answered.Add(1)
		}
		done <- nil
	}()
	for i := range count {
		a.number++
		q := datagram{kind: kind, number: a.number, size: uint32(length)}
		if _, err := a.conn.Write(q.encode(a.mark, length)); err != nil && !isICMPError(err) {
			_ = a.conn.SetReadDeadline(time.Now()) // which ends the reader
			return e, errors.Join(err, <-done)
		}
		pause(ctx, time.Until(began.Add(time.Duration(i+1)*paceTime)))
	}
	if err := <-done; err != nil {
		return e, err
	}
	// Answers after the deadline arrive before the counts: on a busy machine they are late, and not lost.
	after, err := a.askCounts(func(d datagram, filled []byte) {
		if d.kind == kindAnswer && d.number-first < uint32(count) {
			answered.Add(1)
			if !isPadding(d.number, filled) {
				wrong.Add(1)
			}
		}
	})
	came := int(after.came - before.came)
	e.There = netstate.Traffic{Sent: count, Lost: max(0, count-came-int(after.overrun-before.overrun)), Wrong: int(after.wrong - before.wrong)}
	dropped := max(overrun.Load(), a.overrun)
	e.Back = netstate.Traffic{Sent: came, Lost: max(0, came-int(answered.Load()+dropped-a.overrun)), Wrong: int(wrong.Load())}
	a.overrun = dropped
	return e, err
}

// askCounts requests the Echo's counts until the Echo answers, at most 20 times. Unless late is nil, it calls late for
// each other readable datagram that arrives meanwhile. It fails without an answer.
func (a *asker) askCounts(late func(datagram, []byte)) (echoCounts, error) {
	for range 20 {
		a.number++
		if err := a.conn.SetReadDeadline(time.Now().Add(a.patience)); err != nil {
			return echoCounts{}, err
		}
		if _, err := a.conn.Write(datagram{kind: kindCounts, number: a.number}.encode(a.mark, 0)); err != nil && !isICMPError(err) {
			return echoCounts{}, err
		}
		for {
			r, err := receiveDatagram(a.conn, a.buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil && !isICMPError(err) {
				return echoCounts{}, err
			}
			d, filled, bad := decodeDatagram(a.mark, a.buf[:r.n])
			switch {
			case err != nil || bad != nil:
			case d.kind == kindAnswer && d.number == a.number:
				return d.echoCounts, nil
			case late != nil:
				late(d, filled)
			}
		}
	}
	return echoCounts{}, fmt.Errorf("no answer from %s", a.conn.RemoteAddr())
}

// serveStreams answers streams with the mark on l in the background. When ctx ends, it closes l and the streams. The
// returned function closes l and waits until all streams have ended.
func serveStreams(ctx context.Context, l net.Listener, mark []byte) (wait func()) {
	var all sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
				_ = answerStream(c.(*net.TCPConn), mark) // the client reports the error
			})
		}
	})
	return func() {
		if stop() {
			_ = l.Close()
		}
		all.Wait()
	}
}

// answerStream serves the Echo's side of a stream. It receives the client's parts, sends how many arrived and how many were
// changed, and then sends parts of its own. It fails if the stream does not begin with the mark.
func answerStream(c *net.TCPConn, mark []byte) error {
	got := make([]byte, len(mark))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, mark) {
		return errors.Join(err, errForeign)
	}
	small, large, err := receiveParts(c)
	if err != nil {
		return err
	}
	var counts []byte
	for _, n := range []int{small.Sent, small.Wrong, large.Sent, large.Wrong} {
		counts = binary.BigEndian.AppendUint32(counts, uint32(n))
	}
	if _, err := c.Write(counts); err != nil {
		return err
	}
	_, err = sendParts(c)
	return err
}

// sendParts sends the small parts, then how many segments TCP retransmitted so far, then the large parts. It then closes
// the connection for writing, and returns the number of retransmitted segments. All lengths are fixed, so a changed
// byte does not shift later parts.
func sendParts(c *net.TCPConn) (resent int, err error) {
	began := time.Now()
	for n := range words {
		if _, err := c.Write(paddingBytes(uint32(n), smallMessage)); err != nil {
			return 0, err
		}
		pause(context.Background(), time.Until(began.Add(time.Duration(n+1)*paceTime)))
	}
	if resent, err = retransmitCount(c); err != nil {
		return 0, err
	}
	if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(resent))); err != nil {
		return resent, err
	}
	began = time.Now()
	for n := uint32(0); n < blocks && time.Since(began) < blockTime; n++ {
		if _, err := c.Write(paddingBytes(n, blockLength)); err != nil {
			return resent, err
		}
	}
	return resent, c.CloseWrite()
}

// retransmitCount returns how many lost segments of a connection TCP has retransmitted. It does not count the segments that
// the receiver reported as duplicates.
func retransmitCount(c *net.TCPConn) (n int, err error) {
	err = withSocket(c, func(fd int) error {
		s, err := sock.State(fd)
		n = max(0, int(s.Retransmits)-int(s.Twice))
		return err
	})
	return n, err
}

// receiveParts reads what sendParts sent, up to the end of the stream. It counts the parts and the changed parts, and
// stores the sender's number of retransmitted segments in small.
func receiveParts(c net.Conn) (small, large netstate.Traffic, err error) {
	part := make([]byte, blockLength)
	one := func(t *netstate.Traffic, length int) error {
		if _, err := io.ReadFull(c, part[:length]); err != nil {
			return err
		}
		if !isPadding(uint32(t.Sent), part[:length]) {
			t.Wrong++
		}
		t.Sent++
		return nil
	}
	for err == nil && small.Sent < words {
		err = one(&small, smallMessage)
	}
	if err == nil {
		if _, err = io.ReadFull(c, part[:4]); err == nil {
			small.Resent = min(int(binary.BigEndian.Uint32(part)), words)
		}
	}
	for err == nil {
		if err = one(&large, blockLength); err == io.EOF {
			return small, large, nil
		}
	}
	return small, large, err
}

// exchangeStream exchanges parts with an Echo over a new TCP connection. If the connection fails, is reset, ends early
// or exceeds its deadline, it returns the counts known by that time without an error.
func (a *asker) exchangeStream(ctx context.Context, to netip.AddrPort) (small, large netstate.Exchange, err error) {
	conn, err := (&net.Dialer{Timeout: contactTime}).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return small, large, nil // an error was already recorded for the connections before
	}
	defer conn.Close()
	c := conn.(*net.TCPConn)
	if err := c.SetDeadline(time.Now().Add(4*blockTime + 2*words*paceTime + 10*a.trip)); err != nil {
		return small, large, err
	}
	counts := make([]byte, 16)
	count := func(i int) int { return int(binary.BigEndian.Uint32(counts[4*i:])) }
	resent := 0
	_, err = c.Write(a.mark)
	if err == nil {
		if resent, err = sendParts(c); err == nil {
			small.There = netstate.Traffic{Sent: words, Resent: resent} // known also if the rest hangs
			_, err = io.ReadFull(c, counts)
		}
	}
	if err == nil {
		small.There = netstate.Traffic{Sent: count(0), Wrong: count(1), Resent: resent}
		large.There = netstate.Traffic{Sent: count(2), Wrong: count(3)}
		small.Back, large.Back, err = receiveParts(c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return small, large, nil // another trial finds a stream that hangs
	}
	return small, large, err
}
