package sock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Chain is a sequence of system calls that a thread makes without returning to Go between them. That saves 3 to 5 %
// of a transaction: after a blocking call, the CPU mispredicts each return through the frames of Go, at some 20
// cycles each. The calls are those of the same name in this package. Raw.
type Chain struct{ calls []call }

// call is one system call. The assembly of run depends on the offsets of its fields.
type call struct {
	number  uintptr
	fd      uintptr
	pointer unsafe.Pointer // the second argument; nil if second has it
	second  uintptr
	size    uintptr
	flags   uintptr
	expects int     // the result that continues the chain; not used for a call with the role makes
	role    uintptr // the sum of its roles
	result  int     // of the latest run; an errno is negative
	ticks   uint64  // the CPU's counter after a timed call
}

// Roles of a call.
const (
	makes uintptr = 1 << iota // its result is the descriptor for later calls
	uses                      // it uses the descriptor from an earlier call
	timed                     // read the counter after it
)

// Made stands for the descriptor that an earlier call of the chain returned.
const Made = -1

func (c *Chain) add(x call, fd int) {
	if x.fd = uintptr(fd); fd == Made {
		x.fd, x.role = 0, x.role|uses
	}
	c.calls = append(c.calls, x)
}

// Socket adds a call that opens a socket. Later calls refer to the socket by Made.
func (c *Chain) Socket(family, kind int) {
	c.add(call{number: unix.SYS_SOCKET, second: uintptr(kind | unix.SOCK_CLOEXEC), role: makes | timed}, family)
}

// Accept adds a call that accepts a connection. Later calls refer to the connection by Made.
func (c *Chain) Accept(fd int) {
	c.add(call{number: unix.SYS_ACCEPT4, flags: unix.SOCK_CLOEXEC, role: makes}, fd)
}

// Connect adds a call that connects to an address. The chain keeps a reference to the address.
func (c *Chain) Connect(fd int, to *Addr) {
	c.add(call{number: unix.SYS_CONNECT, pointer: unsafe.Pointer(&to.raw[0]), size: uintptr(to.size), role: timed}, fd)
}

// Send adds a call that must send all of b.
func (c *Chain) Send(fd int, b []byte) {
	c.add(call{number: unix.SYS_SENDTO, pointer: unsafe.Pointer(&b[0]), size: uintptr(len(b)), flags: unix.MSG_NOSIGNAL,
		expects: len(b)}, fd)
}

// Recv adds a call that must fill b.
func (c *Chain) Recv(fd int, b []byte, flags int) {
	c.add(call{number: unix.SYS_RECVFROM, pointer: unsafe.Pointer(&b[0]), size: uintptr(len(b)), flags: uintptr(flags),
		expects: len(b), role: timed}, fd)
}

// Close adds a call that closes the descriptor.
func (c *Chain) Close(fd int) { c.add(call{number: unix.SYS_CLOSE}, fd) }

// Run makes the calls until one has an unexpected result, and returns how many had the expected one.
func (c *Chain) Run() int { return run(&c.calls[0], len(c.calls)) }

// Result returns the result of call i of the latest run.
func (c *Chain) Result(i int) (int, syscall.Errno) {
	if r := c.calls[i].result; r < 0 {
		return -1, syscall.Errno(-r)
	}
	return c.calls[i].result, 0
}

// Ticks returns the counter of the CPU after a Socket, Connect or Recv of the latest run: see thread.Clock.
func (c *Chain) Ticks(i int) uint64 { return c.calls[i].ticks }

// plainRun makes the calls like run, for architectures without the assembly. It does not read the counter.
func plainRun(first *call, n int) (done int) {
	calls, made := unsafe.Slice(first, n), uintptr(0)
	for i := range calls {
		c := &calls[i]
		fd := c.fd
		if c.role&uses != 0 {
			fd = made
		}
		r, _, e := syscall.RawSyscall6(c.number, fd, uintptr(c.pointer)|c.second, c.size, c.flags, 0, 0)
		if c.result = int(r); e != 0 {
			c.result = -int(e)
		}
		switch {
		case c.role&makes == 0 && c.result != c.expects, c.result < 0:
			return i
		case c.role&makes != 0:
			made = r
		}
	}
	return n
}
