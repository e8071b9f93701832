package inspect

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const (
	// contactTime bounds the wait for the first answer: the Echo may have just been started.
	contactTime = 10 * time.Second
	// tryTime is the least timeout of one datagram. tries is how often a size is tried before it counts as too large.
	tryTime = 250 * time.Millisecond
	tries   = 3
	// sendTime is the interval between two datagrams of Send.
	sendTime = 50 * time.Millisecond
	// leastIPv4 and leastIPv6 are packet sizes in bytes that pass on any path in practice.
	leastIPv4, leastIPv6 = 576, 1280
	// most is the largest payload of a UDP datagram over IPv4, in bytes.
	most = 65507
	// rounds is how many datagrams of each kind are timed. If a round trip takes longer than tryTime/10, farRounds are.
	rounds, farRounds = 10, 3
)

// option is a socket option, with its number and value in IPv4 and in IPv6.
type option struct {
	name                   string
	v4, value4, v6, value6 int
}

var (
	// noFragments forbids fragmentation, and lets a socket try sizes that a router has reported as too large.
	noFragments = option{
		"MTU_DISCOVER", unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE,
	}
	// hops makes a socket report the TTL of received datagrams.
	hops = option{"RECVTTL", unix.IP_RECVTTL, 1, unix.IPV6_RECVHOPLIMIT, 1}
	// reports makes an unconnected socket return the ICMP errors of its datagrams.
	reports = option{"RECVERR", unix.IP_RECVERR, 1, unix.IPV6_RECVERR, 1}
)

// controlFunc returns a Control function for a net.Dialer or net.ListenConfig. It sets the options on each new socket.
func controlFunc(options ...option) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			for _, o := range options {
				// An IPv6 socket also accepts IPv4, with IPv4's option.
				err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, o.v4, o.value4)
				if err == nil && strings.HasSuffix(network, "6") {
					err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, o.v6, o.value6)
				}
				failed = errors.Join(failed, os.NewSyscallError("setsockopt "+o.name, err))
			}
		})
		return errors.Join(err, failed)
	}
}

// arrival describes a received datagram. n is its length, and ttl is its TTL on arrival, 0 if unknown. overrun is how
// many datagrams have not fitted into the socket's buffer since the socket was opened.
type arrival struct {
	n       int
	from    netip.AddrPort
	ttl     byte
	overrun uint32
}

// receiveDatagram reads a datagram into buf, and describes it.
func receiveDatagram(conn *net.UDPConn, buf []byte) (r arrival, err error) {
	var control [128]byte
	var size int
	r.n, size, _, r.from, err = conn.ReadMsgUDPAddrPort(buf, control[:])
	messages, _ := unix.ParseSocketControlMessage(control[:size]) // after an error there is no TTL
	for _, m := range messages {
		switch h := m.Header; {
		case len(m.Data) > 0 && (h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL || h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_HOPLIMIT):
			r.ttl = m.Data[0] // of a little-endian number below 256
		case len(m.Data) >= 4 && h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL:
			r.overrun = binary.NativeEndian.Uint32(m.Data)
		}
	}
	return r, err
}

// firstTTL is the TTL with which Linux sends its own packets.
const firstTTL = 64

// hopsOf returns how many hops a datagram has taken if it arrives with this TTL; 0 if unknown. It assumes that Linux
// sent the datagram.
func hopsOf(ttl byte) int {
	if ttl == 0 || ttl > firstTTL {
		return 0
	}
	return firstTTL - int(ttl) + 1
}

// isICMPError reports whether err is an ICMP error about an earlier datagram, and not an error of the socket.
func isICMPError(err error) bool {
	var no unix.Errno
	return errors.As(err, &no) && slices.Contains([]unix.Errno{
		unix.ECONNREFUSED, unix.EMSGSIZE, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.EPROTO,
	}, no)
}

// Echo answers datagrams with the mark on a UDP port of all addresses until ctx ends, and accepts streams with the mark
// on the TCP port of the same number. It returns how many datagrams it answered.
func Echo(ctx context.Context, port int, mark []byte) (int, error) {
	config := net.ListenConfig{Control: controlFunc(noFragments, reports, hops)}
	socket, err := config.ListenPacket(ctx, "udp", ":"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	defer socket.Close()
	streams, err := config.Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	defer serveStreams(ctx, streams, mark)()
	defer context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })() // a closed socket has ended too
	conn := socket.(*net.UDPConn)                                                          // by the requested network
	if err := errors.Join(enlargeBuffer(conn), setNoChecksum(conn, false)); err != nil {
		return 0, err
	}
	answered := 0
	buf := make([]byte, most+1)
	var last question
	senders, bare := senderCounts{}, false
	for {
		r, err := receiveDatagram(conn, buf)
		switch {
		case ctx.Err() != nil:
			return answered, nil
		case errors.Is(err, unix.EMSGSIZE) && last.from.IsValid(): // a router's word about the last answer
			last.sendTooBig(conn, mark)
			continue
		case isICMPError(err):
			continue
		case err != nil:
			return answered, err
		}
		q, filled, err := decodeDatagram(mark, buf[:r.n])
		if h := senders.countArrival(r, q, filled, err); err == nil && q.isQuestion() {
			if is := q.kind == kindBare; is != bare {
				if err := setNoChecksum(conn, is); err != nil {
					return answered, err
				}
				bare = is
			}
			last = question{datagram{kind: kindAnswer, number: q.number, size: uint32(r.n), to: netip.AddrPortFrom(r.from.Addr().Unmap(), r.from.Port()), ttl: r.ttl, echoCounts: h}, r.from}
			last.sendAnswer(conn, mark, int(q.size))
			answered++
		}
	}
}

// senderCounts has an Echo's counts by the sender of the questions.
type senderCounts map[netip.AddrPort]*echoCounts

// countArrival counts a question of kindCheck or kindBare, and an unreadable datagram of a sender that has sent such questions
// before. It returns the counts of the sender. failed is why the datagram is unreadable, nil if it is readable.
func (l senderCounts) countArrival(r arrival, q datagram, filled []byte, failed error) echoCounts {
	h := l[r.from]
	if h == nil && (failed != nil || !q.isCounted()) {
		return echoCounts{}
	}
	if h == nil {
		h = &echoCounts{}
		l[r.from] = h
	}
	h.overrun = r.overrun
	if failed != nil || q.isCounted() {
		h.came++
	}
	if failed != nil || q.isCounted() && !isPadding(q.number, filled) {
		h.wrong++
	}
	return *h
}

// question is a received question, with the answer to send.
type question struct {
	// reply is the answer to it.
	reply datagram
	// from is its sender.
	from netip.AddrPort
}

// sendAnswer sends the answer, padded to size bytes, or kindTooBig if it is too large for the device. A client that does not
// receive it asks again.
func (q question) sendAnswer(conn *net.UDPConn, mark []byte, size int) {
	_, err := conn.WriteToUDPAddrPort(q.reply.encode(mark, min(size, most)), q.from)
	if errors.Is(err, unix.EMSGSIZE) {
		q.sendTooBig(conn, mark)
	}
}

// sendTooBig tells the client that the requested answer cannot be sent.
func (q question) sendTooBig(conn *net.UDPConn, mark []byte) {
	q.reply.kind = kindTooBig
	_, _ = conn.WriteToUDPAddrPort(q.reply.encode(mark, 0), q.from)
}

// asker is a client of an Echo.
type asker struct {
	conn   *net.UDPConn
	mark   []byte
	number uint32
	buf    []byte
	// over is the size of the IP and UDP headers in bytes.
	over int
	// seen is our address as the other end sees it.
	seen netip.AddrPort
	// silent is true if packets that are too large were dropped without an ICMP error.
	silent bool
	// there is the number of hops that the last answered question took. back is the number that its answer took.
	there, back int
	// trip is the round-trip time. patience is the timeout of an answer.
	trip, patience time.Duration
	// overrun is how many datagrams the socket has dropped since it was opened because its buffer was full.
	overrun int64
}

// dialEcho opens a socket for questions to an Echo. It sends nothing yet.
func dialEcho(ctx context.Context, to netip.AddrPort, mark []byte) (*asker, error) {
	d := net.Dialer{Control: controlFunc(noFragments, hops)}
	conn, err := d.DialContext(ctx, "udp", to.String())
	if err != nil {
		return nil, err
	}
	a := &asker{conn: conn.(*net.UDPConn), mark: mark, buf: make([]byte, most+1), over: headerIPv4, patience: tryTime}
	if to.Addr().Unmap().Is6() {
		a.over = headerIPv6
	}
	return a, nil
}

// outcome is the result of one question.
type outcome int

const (
	// silence means that no answer arrived in time.
	silence outcome = iota
	// through means that question and answer arrived with the requested lengths.
	through
	// refused means that the question or the answer is too large for a device or a router.
	refused
)

// ask sends a question of length bytes that requests an answer of size bytes. It waits at most d for the answer.
func (a *asker) ask(length, size int, d time.Duration) (outcome, error) {
	return a.askAgain(a.number+1, length, size, d)
}

// askAgain sends a question like ask. It also accepts late answers to earlier questions, from number since on, which
// must have had the same length and size.
func (a *asker) askAgain(since uint32, length, size int, d time.Duration) (outcome, error) {
	a.number++
	q := datagram{kind: kindAsk, number: a.number, size: uint32(size)}
	deadline := time.Now().Add(d)
	if err := a.conn.SetReadDeadline(deadline); err != nil {
		return silence, err
	}
	if _, err := a.conn.Write(q.encode(a.mark, length)); errors.Is(err, unix.EMSGSIZE) {
		return refused, nil
	} else if err != nil && !isICMPError(err) {
		return silence, err
	}
	for {
		got, err := receiveDatagram(a.conn, a.buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return silence, nil
		case errors.Is(err, unix.EMSGSIZE): // from a router
			return refused, nil
		case isICMPError(err) && time.Now().Before(deadline):
			continue
		case isICMPError(err):
			return silence, nil
		case err != nil:
			return silence, err
		}
		r, _, err := decodeDatagram(a.mark, a.buf[:got.n])
		if err != nil || r.number < since {
			continue
		}
		a.seen, a.there, a.back = r.to, hopsOf(r.ttl), hopsOf(got.ttl)
		if r.kind == kindTooBig || int(r.size) != max(length, len(a.mark)+header) || got.n < size {
			return refused, nil
		}
		return through, nil
	}
}

// awaitFirstAnswer asks until the first answer, each time with a longer timeout, for at most contactTime in total. It stores
// the round-trip time and the timeout of later answers. Without an answer it fails; the error names what else the host
// answers.
func (a *asker) awaitFirstAnswer(ctx context.Context) error {
	limit, stop := context.WithTimeout(ctx, contactTime)
	defer stop()
	began := time.Now()
	for wait := tryTime; limit.Err() == nil; wait += tryTime / 2 {
		asked := time.Now()
		got, err := a.ask(0, 0, wait)
		if err != nil {
			return err
		}
		if got == through {
			a.trip = time.Since(asked)
			a.patience = max(tryTime, 3*a.trip)
			return nil
		}
	}
	err := fmt.Errorf("%s %s within %s", netstate.NoAnswer, a.conn.RemoteAddr(), time.Since(began).Round(time.Second))
	if other := otherAnswers(context.WithoutCancel(ctx), a.conn.RemoteAddr().(*net.UDPAddr).AddrPort()); len(other) > 0 { // by the requested network
		err = fmt.Errorf("%w%s%s", err, netstate.ButTo, strings.Join(other, " and "))
	}
	return advice.With(err, "a NetworkPolicy or a firewall may block UDP there, or nothing listens")
}

// largestPacket returns the size of the largest packet between least and most that passes, in bytes with headers. It
// assumes that least passes. With back it tests answers, otherwise questions. No answer in all tries counts as too
// large.
func (a *asker) largestPacket(ctx context.Context, least, most int, back bool) (int, error) {
	fits := func(packet int) (bool, error) {
		length, size := packet-a.over, 0
		if back {
			length, size = 0, packet-a.over
		}
		first := a.number + 1
		for range tries {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			got, err := a.askAgain(first, length, size, a.patience)
			if err != nil || got != silence {
				return got == through, err
			}
		}
		a.silent = true
		return false, nil
	}
	if ok, err := fits(most); ok || err != nil {
		return most, err
	}
	for least < most-1 {
		middle := (least + most) / 2
		ok, err := fits(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			least = middle
		} else {
			most = middle
		}
	}
	return least, nil
}

// PathMTU finds the sizes of the largest packets that pass unfragmented to an Echo and back. They are at most the MTU
// of the outgoing device. It also measures round trips and hops. It fails if the Echo does not answer.
func PathMTU(ctx context.Context, to netip.AddrPort, mark []byte) (netstate.PathMTU, error) {
	a, err := dialEcho(ctx, to, mark)
	if err != nil {
		return netstate.PathMTU{}, err
	}
	defer a.conn.Close()
	if err := a.awaitFirstAnswer(ctx); err != nil {
		return netstate.PathMTU{}, err
	}
	found := netstate.PathMTU{To: to.String(), SeenAs: a.seen.String(), HopsThere: a.there, HopsBack: a.back, Trip: int64(a.trip)}
	if took, err := measureConnect(ctx, to.String(), settleTime); err == nil {
		found.Connect = int64(took)
	}
	if found.Own, err = a.deviceMTU(); err != nil {
		return netstate.PathMTU{}, err
	}
	least := leastIPv4
	if a.over == headerIPv6 {
		least = leastIPv6
	}
	bound := min(found.Own, most+a.over)
	if found.There, err = a.largestPacket(ctx, min(least, bound), bound, false); err != nil {
		return netstate.PathMTU{}, err
	}
	if found.Back, err = a.largestPacket(ctx, min(least, bound), bound, true); err != nil {
		return netstate.PathMTU{}, err
	}
	found.Silent = a.silent
	found.Shortest, err = a.shortestTrips(found.There-a.over, found.Back-a.over)
	return found, err
}

// shortestTrips returns the shortest round-trip times of three kinds of exchange: small datagrams both ways, questions
// of there bytes, and answers of back bytes. A time is 0 if no question of the kind was answered.
func (a *asker) shortestTrips(there, back int) (t netstate.Trips, err error) {
	n := rounds
	if a.trip > tryTime/10 {
		n = farRounds
	}
	for range n {
		for _, kind := range []struct {
			length, size int
			shortest     *int64
		}{{0, 0, &t.Small}, {there, 0, &t.There}, {0, back, &t.Back}} {
			asked := time.Now()
			got, err := a.ask(kind.length, kind.size, max(a.patience, tries*tryTime))
			if err != nil {
				return t, err
			}
			if took := int64(time.Since(asked)); got == through && (*kind.shortest == 0 || took < *kind.shortest) {
				*kind.shortest = took
			}
		}
	}
	return t, nil
}

// deviceMTU returns the MTU in bytes of the device that has our source address. It fails if no device has it.
func (a *asker) deviceMTU() (int, error) {
	local := a.conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap() // by the requested network
	devices, err := net.Interfaces()
	if err != nil {
		return 0, err
	}
	for _, d := range devices {
		addresses, err := d.Addrs()
		if err != nil {
			continue // it has gone
		}
		for _, address := range addresses {
			p, err := netip.ParsePrefix(address.String())
			if err == nil && p.Addr().Unmap().WithZone("") == local.WithZone("") {
				return d.MTU, nil
			}
		}
	}
	return 0, fmt.Errorf("no device has the address %s that packets to %s are sent from", local, a.conn.RemoteAddr())
}

// Send sends datagrams with the mark to an Echo until ctx ends, about one every sendTime. It counts them and their
// answers.
func Send(ctx context.Context, to netip.AddrPort, mark []byte) (netstate.Sending, error) {
	a, err := dialEcho(ctx, to, mark)
	if err != nil {
		return netstate.Sending{}, err
	}
	defer a.conn.Close()
	done := netstate.Sending{To: to.String()}
	for ctx.Err() == nil {
		began := time.Now()
		got, err := a.ask(0, 0, sendTime)
		if err != nil {
			return done, err
		}
		done.Sent++
		if got == through {
			done.Answered++
			done.SeenAs = a.seen.String()
			pause(ctx, sendTime-time.Since(began))
		}
	}
	return done, nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	limit, stop := context.WithTimeout(ctx, d)
	defer stop()
	<-limit.Done()
}

// batch is how many frames are read before they are counted.
const batch = 1024

// Watch captures the frames of a device until ctx ends. It counts the frames with the mark, and the encrypted frames, by
// encapsulation. Unless port is 0, a UDP datagram with the mark counts as an encapsulation if neither of its ports is
// port. Watch needs CAP_NET_RAW.
func Watch(ctx context.Context, device string, mark []byte, port uint16) (netstate.Wire, error) {
	ns, err := netns.Here()
	if err != nil {
		return netstate.Wire{}, err
	}
	defer ns.Close()
	c, err := capture.Open(ns, capture.Options{Device: device, Mark: mark})
	if err != nil {
		return netstate.Wire{}, advice.With(err, "frames are seen with the capability NET_RAW, in a host-network pod those of the node")
	}
	defer c.Close()
	t := tally{port: port, marked: map[netstate.Wrapping]int{}, sealed: map[netstate.Wrapping]int{}}
	wire := netstate.Wire{Device: device}
	for {
		n := 0
		frames, err := c.Until(ctx, func(capture.Frame) bool { n++; return n == batch })
		for i := range frames {
			t.add(&frames[i])
		}
		var lost *capture.LostError
		if errors.As(err, &lost) {
			wire.Lost += lost.Frames
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil && lost == nil {
			return netstate.Wire{}, fmt.Errorf("watch %s: %w", device, err)
		}
	}
	wire.Marked, wire.Sealed = sortedWrappings(t.marked), sortedWrappings(t.sealed)
	return wire, nil
}
