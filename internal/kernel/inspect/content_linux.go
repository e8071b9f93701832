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
	// messages is how many datagrams of each size are sent, one every paceTime: slow enough for a line of 100 Mbit/s.
	messages, paceTime = 1024, time.Millisecond
	// bareMessages is how many of them have no checksum.
	bareMessages = 512
	// smallMessage is the length of a small message, in bytes.
	smallMessage = 128
	// lateTime is how long to wait for the last answers: a busy machine answers late, which is not a loss.
	lateTime = time.Second
	// socketRoom is the size of a socket's receive buffer, so that a process that waits for a CPU loses no datagrams.
	socketRoom = 4 << 20
	// blocks is how many parts of a stream are sent in each direction; blockTime bounds the time.
	blocks, blockTime = 256, 2 * time.Second
	// words is how many small parts come before them, each in its own packet. They are too few to overflow a queue, so
	// a retransmission means a loss.
	words       = 512
	blockLength = 1 << 16
)

// roomy sets a large receive buffer, and enables the count of datagrams without room.
func roomy(conn *net.UDPConn) error {
	return withSocket(conn, func(fd int) error {
		_ = sock.SetReceiveBuffer(fd, socketRoom) // as large as permitted
		return os.NewSyscallError("setsockopt RXQ_OVFL", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1))
	})
}

// unsummed sets whether a socket sends datagrams without a checksum. The socket also accepts such datagrams, which IPv6
// does not do by default.
func unsummed(conn *net.UDPConn, on bool) error {
	value := 0
	if on {
		value = 1
	}
	return withSocket(conn, func(fd int) error {
		return os.NewSyscallError("setsockopt NO_CHECK", errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, value),
			unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_TX, value), unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1)))
	})
}

// withSocket calls do with the descriptor of a connection, and returns its error.
func withSocket(conn syscall.Conn, do func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

// Content exchanges messages with known content with an Echo: datagrams, the large ones in packets of length bytes,
// parts of a stream, and connections.
func Content(ctx context.Context, to netip.AddrPort, mark []byte, length int) (netstate.Content, error) {
	a, err := dial(ctx, to, mark)
	if err != nil {
		return netstate.Content{}, err
	}
	defer a.conn.Close()
	if err := errors.Join(roomy(a.conn), a.contact(ctx)); err != nil {
		return netstate.Content{}, err
	}
	var c netstate.Content
	if c.Small, err = a.exchange(ctx, checks, messages, smallMessage); err != nil {
		return c, err
	}
	if c.Large, err = a.exchange(ctx, checks, messages, max(length-a.over, smallMessage)); err != nil {
		return c, err
	}
	own, err := a.own()
	if err == nil {
		err = unsummed(a.conn, true)
	}
	if err == nil {
		c.Bare, err = a.exchange(ctx, bares, bareMessages, max(min(own, most)-a.over, smallMessage))
	}
	if err != nil {
		return c, err
	}
	c.Dials = dialEach(ctx, to.String())
	if len(c.Dials.Times) > 0 {
		c.Words, c.Blocks, err = a.stream(ctx, to)
	}
	return c, err
}

// exchange sends count datagrams of length bytes and counts their answers of the same length.
func (a *asker) exchange(ctx context.Context, kind byte, count, length int) (e netstate.Exchange, err error) {
	before, err := a.told(nil)
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
			r, err := receive(a.conn, a.buf)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				done <- nil
				return
			case icmp(err):
				continue
			case err != nil:
				done <- err
				return
			}
			overrun.Store(max(overrun.Load(), int64(r.overrun)))
			d, filled, err := decode(a.mark, a.buf[:r.n])
			switch {
			case err != nil || d.kind != answers || d.number-first >= uint32(count):
				if err == nil { // an answer to an earlier question
					continue
				}
				wrong.Add(1)
			case !filledFor(d.number, filled):
				wrong.Add(1)
			}
			answered.Add(1)
		}
		done <- nil
	}()
	for i := range count {
		a.number++
		q := datagram{kind: kind, number: a.number, size: uint32(length)}
		if _, err := a.conn.Write(q.encode(a.mark, length)); err != nil && !icmp(err) {
			_ = a.conn.SetReadDeadline(time.Now()) // which ends the reader
			return e, errors.Join(err, <-done)
		}
		pause(ctx, time.Until(began.Add(time.Duration(i+1)*paceTime)))
	}
	if err := <-done; err != nil {
		return e, err
	}
	// Answers after the deadline arrive before the counts: on a busy machine they are late, and not lost.
	after, err := a.told(func(d datagram, filled []byte) {
		if d.kind == answers && d.number-first < uint32(count) {
			answered.Add(1)
			if !filledFor(d.number, filled) {
				wrong.Add(1)
			}
		}
	})
	came := int(after.came - before.came)
	e.There = netstate.Traffic{Sent: count, Lost: max(0, count-came-int(after.overrun-before.overrun)), Wrong: int(after.wrong - before.wrong)}
	e.Back = netstate.Traffic{Sent: came, Lost: max(0, came-int(answered.Load()+overrun.Load())), Wrong: int(wrong.Load())}
	return e, err
}

// told requests the counts of the Echo until it answers. It calls late, if given, for each other datagram that arrives
// before.
func (a *asker) told(late func(datagram, []byte)) (heard, error) {
	for range 20 {
		a.number++
		if err := a.conn.SetReadDeadline(time.Now().Add(a.patience)); err != nil {
			return heard{}, err
		}
		if _, err := a.conn.Write(datagram{kind: tells, number: a.number}.encode(a.mark, 0)); err != nil && !icmp(err) {
			return heard{}, err
		}
		for {
			r, err := receive(a.conn, a.buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil && !icmp(err) {
				return heard{}, err
			}
			d, filled, bad := decode(a.mark, a.buf[:r.n])
			switch {
			case err != nil || bad != nil:
			case d.kind == answers && d.number == a.number:
				return d.heard, nil
			case late != nil:
				late(d, filled)
			}
		}
	}
	return heard{}, fmt.Errorf("no answer from %s", a.conn.RemoteAddr())
}

// serve accepts streams until ctx ends. The returned function waits for the end.
func serve(ctx context.Context, l net.Listener, mark []byte) (wait func()) {
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
				_ = mirror(c.(*net.TCPConn), mark) // the client reports the error
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

// mirror receives the parts of one stream, reports how they arrived, and sends others.
func mirror(c *net.TCPConn, mark []byte) error {
	got := make([]byte, len(mark))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, mark) {
		return errors.Join(err, errForeign)
	}
	small, large, err := take(c)
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
	_, err = give(c)
	return err
}

// give sends the parts of a stream. It returns how many of the small parts TCP retransmitted because they were lost,
// and sends that number before the large parts. Their lengths separate the parts, and the stream ends with the
// connection: a wrong byte does not shift them.
func give(c *net.TCPConn) (resent int, err error) {
	began := time.Now()
	for n := range words {
		if _, err := c.Write(fill(uint32(n), smallMessage)); err != nil {
			return 0, err
		}
		pause(context.Background(), time.Until(began.Add(time.Duration(n+1)*paceTime)))
	}
	if resent, err = sentAgain(c); err != nil {
		return 0, err
	}
	if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(resent))); err != nil {
		return resent, err
	}
	began = time.Now()
	for n := uint32(0); n < blocks && time.Since(began) < blockTime; n++ {
		if _, err := c.Write(fill(n, blockLength)); err != nil {
			return resent, err
		}
	}
	return resent, c.CloseWrite()
}

// sentAgain returns how many segments of a connection were retransmitted, without those that the receiver already had.
func sentAgain(c *net.TCPConn) (n int, err error) {
	err = withSocket(c, func(fd int) error {
		s, err := sock.State(fd)
		n = max(0, int(s.Retransmits)-int(s.Twice))
		return err
	})
	return n, err
}

// take reads the parts of a stream up to its end.
func take(c net.Conn) (small, large netstate.Traffic, err error) {
	part := make([]byte, blockLength)
	one := func(t *netstate.Traffic, length int) error {
		if _, err := io.ReadFull(c, part[:length]); err != nil {
			return err
		}
		if !filledFor(uint32(t.Sent), part[:length]) {
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

// stream sends the parts of a stream to an Echo and receives the Echo's. Parts that a deadline cuts off are not
// counted.
func (a *asker) stream(ctx context.Context, to netip.AddrPort) (small, large netstate.Exchange, err error) {
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
		if resent, err = give(c); err == nil {
			small.There = netstate.Traffic{Sent: words, Resent: resent} // known also if the rest hangs
			_, err = io.ReadFull(c, counts)
		}
	}
	if err == nil {
		small.There = netstate.Traffic{Sent: count(0), Wrong: count(1), Resent: resent}
		large.There = netstate.Traffic{Sent: count(2), Wrong: count(3)}
		small.Back, large.Back, err = take(c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return small, large, nil // another trial finds a stream that hangs
	}
	return small, large, err
}
