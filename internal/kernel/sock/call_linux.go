package sock

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags of Send and Recv.
const (
	// WaitAll makes Recv wait for the whole buffer.
	WaitAll = unix.MSG_WAITALL
	// Peek leaves what Recv returns in the queue.
	Peek = unix.MSG_PEEK
	// Trunc makes Recv on a TCP socket discard bytes instead of copying them.
	Trunc = unix.MSG_TRUNC
)

// Families and kinds of Socket.
const (
	IPv4     = unix.AF_INET
	IPv6     = unix.AF_INET6
	Stream   = unix.SOCK_STREAM
	Datagram = unix.SOCK_DGRAM
)

// Socket opens a socket with the flag close-on-exec. Raw.
func Socket(family, kind, protocol int) (int, syscall.Errno) {
	fd, _, e := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_CLOEXEC), uintptr(protocol))
	return int(fd), e
}

// Connect connects fd. A TCP connect waits at most SO_SNDTIMEO and then returns EINPROGRESS; another call continues
// to wait. Without that timeout it may wait for minutes. Raw.
func Connect(fd int, to *Addr) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw[0])), uintptr(to.size))
	return e
}

// Accept accepts a connection; it waits at most SO_RCVTIMEO (then EAGAIN). The connection inherits the listener's
// timeouts, congestion control and TCP_NODELAY. Raw.
func Accept(fd int) (int, syscall.Errno) { return AcceptNow(fd, 0) }

// More is a flag of Send: an incomplete segment waits for the next data, or for the end of the connection.
const More = unix.MSG_MORE

// Send sends b, which must not be empty. If the peer has gone, it returns EPIPE without a signal. Raw.
func Send(fd int, b []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(flags|unix.MSG_NOSIGNAL), 0, 0)
	return int(n), e
}

// Recv receives into b, which must not be empty; it waits at most SO_RCVTIMEO (then EAGAIN). Raw.
func Recv(fd int, b []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(flags), 0, 0)
	return int(n), e
}

// RecvFrom receives a datagram into b and stores its sender in from. Raw.
func RecvFrom(fd int, b []byte, from *Addr) (int, syscall.Errno) {
	from.size = uint32(len(from.raw))
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0,
		uintptr(unsafe.Pointer(&from.raw[0])), uintptr(unsafe.Pointer(&from.size)))
	return int(n), e
}

// SendTo sends the datagram b, which must not be empty, to an address. Raw.
func SendTo(fd int, b []byte, to *Addr) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL,
		uintptr(unsafe.Pointer(&to.raw[0])), uintptr(to.size))
	return int(n), e
}

// SendFile sends n bytes of file from *offset, which it advances. Raw.
func SendFile(fd, file int, offset *int64, n int) (int, syscall.Errno) {
	sent, _, e := syscall.RawSyscall6(unix.SYS_SENDFILE, uintptr(fd), uintptr(file), uintptr(unsafe.Pointer(offset)),
		uintptr(n), 0, 0)
	return int(sent), e
}

// Close closes fd. Raw.
func Close(fd int) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return e
}

// Shutdown ends both directions of fd, which wakes every thread that blocks on it. Raw.
func Shutdown(fd int) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_RDWR, 0)
	return e
}

// AcceptPolite accepts a connection like Accept, but tells the Go scheduler that the thread may block.
func AcceptPolite(fd int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	return int(n), e
}

// ConnectPolite connects like Connect, but tells the Go scheduler that the thread may block.
func ConnectPolite(fd int, to *Addr) syscall.Errno {
	_, _, e := syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw[0])), uintptr(to.size))
	return e
}

// RecvPolite receives like Recv, but tells the Go scheduler that the thread may block.
func RecvPolite(fd int, b []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(flags), 0, 0)
	return int(n), e
}

// RecvAll fills b from a connection whose receive timeout paces it. It returns false if the connection ends first, or as
// soon as giveUp, which it calls after each attempt, returns true.
func RecvAll(fd int, b []byte, giveUp func() bool) bool {
	for got := 0; got < len(b); {
		n, e := RecvPolite(fd, b[got:], 0)
		if (e != 0 && e != syscall.EAGAIN && e != syscall.EINTR) || (e == 0 && n == 0) || giveUp() {
			return false
		}
		if e == 0 {
			got += n
		}
	}
	return true
}

// RecvFromPolite receives a datagram and returns its sender. It tells the Go scheduler that the thread may block.
func RecvFromPolite(fd int, b []byte) (int, Addr, syscall.Errno) {
	var from Addr
	from.size = uint32(len(from.raw))
	n, _, e := syscall.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0,
		uintptr(unsafe.Pointer(&from.raw[0])), uintptr(unsafe.Pointer(&from.size)))
	return int(n), from, e
}

// Bind binds fd to a local address.
func Bind(fd int, a *Addr) syscall.Errno {
	_, _, e := syscall.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&a.raw[0])), uintptr(a.size))
	return e
}

// Listen makes fd a listener with room for backlog connections.
func Listen(fd, backlog int) syscall.Errno {
	_, _, e := syscall.Syscall(unix.SYS_LISTEN, uintptr(fd), uintptr(backlog), 0)
	return e
}

// Local returns the address that fd is bound to.
func Local(fd int) (Addr, error) {
	var a Addr
	a.size = uint32(len(a.raw))
	_, _, e := syscall.Syscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&a.raw[0])),
		uintptr(unsafe.Pointer(&a.size)))
	if e != 0 {
		return Addr{}, os.NewSyscallError("getsockname", e)
	}
	return a, nil
}

// MemoryFile returns a descriptor of an anonymous file in memory that holds content, for SendFile.
func MemoryFile(content []byte) (int, error) {
	fd, err := unix.MemfdCreate("cnibench-stream", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	for done := 0; done < len(content); {
		n, err := unix.Write(fd, content[done:])
		if err != nil {
			Close(fd)
			return -1, os.NewSyscallError("write", err)
		}
		done += n
	}
	return fd, nil
}
