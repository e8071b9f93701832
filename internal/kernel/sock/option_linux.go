package sock

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetTimeouts limits every blocking call on fd to d, rounded to the kernel's tick; 0 removes the limit. The connections
// of a listener inherit the limit.
func SetTimeouts(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &tv); err != nil {
			return os.NewSyscallError("setsockopt timeout", err)
		}
	}
	return nil
}

// SetNoDelay makes TCP send small segments at once.
func SetNoDelay(fd int) error {
	return os.NewSyscallError("setsockopt TCP_NODELAY", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
}

// SetReuse lets fd bind an address that a closing socket still holds. With port, several sockets with this option share
// the port, and the kernel distributes connections among them.
func SetReuse(fd int, port bool) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_REUSEADDR", err)
	}
	if !port {
		return nil
	}
	return os.NewSyscallError("setsockopt SO_REUSEPORT", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// ReuseAddress is the Control of a net.Dialer or net.ListenConfig that sets SO_REUSEADDR. A child process holds copies
// of all descriptors until it executes its program, so a closed socket may still occupy its port.
func ReuseAddress(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) { failed = SetReuse(int(fd), false) })
	return errors.Join(err, failed)
}

// HearICMP is the Control of a net.Dialer that lets the first ICMP message refuse a TCP connection. Without it, the kernel
// ignores a message that arrives while connect() still runs, and the connection is refused only after the SYN has been
// repeated. On one CPU the message always arrives that early.
func HearICMP(network, _ string, c syscall.RawConn) error {
	level, option := unix.IPPROTO_IP, unix.IP_RECVERR
	switch network {
	case "tcp6":
		level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVERR
	case "tcp4":
	default:
		return nil // a connected UDP socket hears refusals, and would hear of more
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = os.NewSyscallError("setsockopt RECVERR", unix.SetsockoptInt(int(fd), level, option, 1))
	})
	return errors.Join(err, failed)
}

// SetDual lets an IPv6 socket accept and receive IPv4 too.
func SetDual(fd int) error {
	return os.NewSyscallError("setsockopt IPV6_V6ONLY", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0))
}

// SetAbort makes Close reset the connection: there is no TIME_WAIT, and unsent data are dropped.
func SetAbort(fd int) error {
	linger := unix.Linger{Onoff: 1}
	return os.NewSyscallError("setsockopt SO_LINGER", unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &linger))
}

// SetReceiveBuffer requests a receive buffer of size bytes, above the system's limit if the process may.
func SetReceiveBuffer(fd, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size) == nil {
		return nil
	}
	return os.NewSyscallError("setsockopt SO_RCVBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size))
}

// SetSendBuffer requests a send buffer of size bytes, above the system's limit if the process may.
func SetSendBuffer(fd, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, size) == nil {
		return nil
	}
	return os.NewSyscallError("setsockopt SO_SNDBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size))
}

// SetSegment makes the kernel split every send on a UDP socket into packets of size bytes. The last packet may be
// shorter. It needs Linux 4.18.
func SetSegment(fd, size int) error {
	return os.NewSyscallError("setsockopt UDP_SEGMENT", unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, size))
}

// SetCoalesce lets a receive on a UDP socket return several packets of one size at once. It needs Linux 5.0.
func SetCoalesce(fd int) error {
	return os.NewSyscallError("setsockopt UDP_GRO", unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1))
}

// SetCongestion sets the congestion control of a TCP socket. It fails with ENOENT if the kernel does not have it, and
// with EPERM if this user may not set it.
func SetCongestion(fd int, name string) error {
	return os.NewSyscallError("setsockopt TCP_CONGESTION", unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name))
}

// Congestion returns the congestion control in force on a TCP socket.
func Congestion(fd int) (string, error) {
	s, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", os.NewSyscallError("getsockopt TCP_CONGESTION", err)
	}
	return strings.TrimRight(s, "\x00"), nil
}

// HasCongestion reports whether this kernel has a congestion control, loaded or as a module. It returns true if that is
// unknown.
func HasCongestion(name string) bool { return !errors.Is(tryCongestion(name), unix.ENOENT) }

// MaySetCongestion reports whether this user may set a congestion control. A pod without rights may set only some.
func MaySetCongestion(name string) bool { return !errors.Is(tryCongestion(name), unix.EPERM) }

// tryCongestion returns the error of setting a congestion control on a temporary socket. It returns nil if it cannot
// open a socket.
func tryCongestion(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }() // it was never used
	return SetCongestion(fd, name)
}

// Congestions returns the congestion controls that this kernel has loaded.
func Congestions() ([]string, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return strings.Fields(string(b)), err
}

// TCPState is the part of TCP_INFO that a trial keeps. The counters wrap at 2^32.
type TCPState struct {
	Retransmits, SegmentsOut, SegmentsIn uint32
	// Twice is how many segments the receiver reported as duplicates; it is also 0 before Linux 4.18.
	Twice        uint32
	CwndSegments uint32
	RTT, RTTVar  time.Duration
	MSS          uint32
}

// State returns the state of the TCP connection fd, from TCP_INFO.
func State(fd int) (TCPState, error) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return TCPState{}, os.NewSyscallError("getsockopt TCP_INFO", err)
	}
	return TCPState{
		Retransmits: i.Total_retrans, Twice: i.Dsack_dups, SegmentsOut: i.Segs_out, SegmentsIn: i.Segs_in, CwndSegments: i.Snd_cwnd,
		RTT: time.Duration(i.Rtt) * time.Microsecond, RTTVar: time.Duration(i.Rttvar) * time.Microsecond, MSS: i.Snd_mss,
	}, nil
}

// Memory is the state of a socket's buffers (SO_MEMINFO).
type Memory struct {
	// ReceiveBuffer and SendBuffer are the limits in force in bytes, including the kernel's overhead, so twice the
	// requested size.
	ReceiveBuffer, SendBuffer uint32
	// Drops is how many packets the socket has dropped since it was opened. A datagram socket drops packets when its
	// receive buffer is full. It wraps around at 2^32.
	Drops uint32
}

// The order of the values of SO_MEMINFO: linux/sock_diag.h, SK_MEMINFO_*.
const (
	memoryReceiveBuffer = 1
	memorySendBuffer    = 3
	memoryDrops         = 8
	memoryValues        = 9
)

// MemoryOf returns the state of the buffers of fd.
func MemoryOf(fd int) (Memory, error) {
	var values [memoryValues]uint32
	size := uint32(unsafe.Sizeof(values))
	_, _, e := syscall.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&values[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return Memory{}, os.NewSyscallError("getsockopt SO_MEMINFO", e)
	}
	return Memory{ReceiveBuffer: values[memoryReceiveBuffer], SendBuffer: values[memorySendBuffer], Drops: values[memoryDrops]}, nil
}
