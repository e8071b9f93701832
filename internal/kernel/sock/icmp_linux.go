package sock

import (
	"encoding/binary"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ICMP types of echo messages in IPv4 and IPv6.
const (
	echoReply4, echoRequest4 = 0, 8
	echoReply6, echoRequest6 = 129, 128
)

// Echo is an ICMP socket that is connected to one address and receives echo replies only.
type Echo struct {
	FD int
	// Raw means that the socket receives the replies to all processes, so the caller must compare identifiers. For
	// IPv4, the replies then begin with the IP header. Otherwise the kernel chose the identifier and delivers only
	// replies to this socket.
	Raw bool
	// Request and Reply are the ICMP types.
	Request, Reply byte
	// Identifier is the identifier that the kernel writes, 0 if Raw.
	Identifier uint16
}

// OpenEcho opens an ICMP socket, and connects it to the address to. The port of the address must be 0. The socket is
// unprivileged, or raw if an unprivileged one is not allowed.
func OpenEcho(to *Addr) (Echo, error) {
	e := Echo{Request: echoRequest4, Reply: echoReply4}
	protocol := unix.IPPROTO_ICMP
	if to.Family() == unix.AF_INET6 {
		e.Request, e.Reply, protocol = echoRequest6, echoReply6, unix.IPPROTO_ICMPV6
	}
	fd, errno := Socket(to.Family(), unix.SOCK_DGRAM, protocol)
	if errno != 0 {
		e.Raw = true
		if fd, errno = Socket(to.Family(), unix.SOCK_RAW, protocol); errno != 0 {
			return Echo{}, os.NewSyscallError("socket icmp", errno)
		}
	}
	e.FD = fd
	if err := e.connectTo(to); err != nil {
		Close(fd)
		return Echo{}, err
	}
	return e, nil
}

// Ask writes the header of an echo request into the first 8 bytes of b, with the checksum over all of b. The rest of
// b is the message.
func (e *Echo) Ask(b []byte, identifier, sequence uint16) {
	b[0], b[1], b[2], b[3] = e.Request, 0, 0, 0
	binary.BigEndian.PutUint16(b[4:], identifier)
	binary.BigEndian.PutUint16(b[6:], sequence)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
}

// checksum returns the Internet checksum (RFC 1071). For ICMPv6 and for unprivileged sockets the kernel writes its own.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func (e *Echo) connectTo(to *Addr) error {
	if e.Raw {
		if err := e.passOnlyReplies(to.Family()); err != nil {
			return err
		}
	}
	if errno := ConnectPolite(e.FD, to); errno != 0 {
		return os.NewSyscallError("connect icmp", errno)
	}
	if e.Raw {
		return nil
	}
	local, err := Local(e.FD)
	e.Identifier = local.AddrPort().Port()
	return err
}

// passOnlyReplies makes a raw socket drop everything but echo replies.
func (e *Echo) passOnlyReplies(family int) error {
	if family == unix.AF_INET6 {
		f := unix.ICMPv6Filter{}
		for i := range f.Data {
			f.Data[i] = ^uint32(0)
		}
		f.Data[echoReply6>>5] &^= 1 << (echoReply6 & 31)
		return os.NewSyscallError("setsockopt ICMPV6_FILTER", unix.SetsockoptICMPv6Filter(e.FD, unix.SOL_ICMPV6, 1, &f))
	}
	const icmpFilter = 1
	pass := ^uint32(1 << echoReply4)
	return os.NewSyscallError("setsockopt ICMP_FILTER", unix.SetsockoptInt(e.FD, syscall.SOL_RAW, icmpFilter, int(int32(pass))))
}
