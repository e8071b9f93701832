package sock

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is what a socket says of its buffers (SO_MEMINFO).
type Memory struct {
	// ReceiveBuffer and SendBuffer are the limits in force in bytes, as the kernel counts: with its own overhead, so
	// twice what was asked for.
	ReceiveBuffer, SendBuffer uint32
	// Drops is how many packets the socket turned away since it was opened: for a datagram socket those that found its
	// receive buffer full. It wraps at 2^32.
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
