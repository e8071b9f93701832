package sock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch is a set of equal datagram buffers for sendmmsg and recvmmsg. It only allocates when it is created.
type Batch struct {
	headers []header
	vectors []unix.Iovec
	memory  []byte
	size    int
}

// header mirrors struct mmsghdr.
type header struct {
	message unix.Msghdr
	length  uint32
}

// NewBatch returns a Batch of count buffers of size bytes each. Both must be at least 1.
func NewBatch(count, size int) *Batch {
	b := &Batch{
		headers: make([]header, count), vectors: make([]unix.Iovec, count), memory: make([]byte, count*size), size: size,
	}
	for i := range b.headers {
		b.vectors[i].Base = &b.memory[i*size]
		b.vectors[i].SetLen(size)
		b.headers[i].message.Iov = &b.vectors[i]
		b.headers[i].message.SetIovlen(1)
	}
	return b
}

// Cap returns the number of buffers.
func (b *Batch) Cap() int { return len(b.headers) }

// Buffer returns the whole buffer i. The caller may write to it.
func (b *Batch) Buffer(i int) []byte { return b.memory[i*b.size : (i+1)*b.size : (i+1)*b.size] }

// Resize makes Send send the first n bytes of buffer i; n is at most the size of the buffers.
func (b *Batch) Resize(i, n int) { b.vectors[i].SetLen(n) }

// Received returns what the last Recv put into buffer i.
func (b *Batch) Received(i int) []byte { return b.Buffer(i)[:min(int(b.headers[i].length), b.size)] }

// Send sends the first n buffers as n datagrams and returns how many were sent. Raw.
func (b *Batch) Send(fd, n int) (int, syscall.Errno) {
	done, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])), uintptr(n),
		unix.MSG_NOSIGNAL, 0, 0)
	return int(done), e
}

// Recv waits for one datagram, at most SO_RCVTIMEO, and receives the others that are queued. It returns their number.
// Raw.
func (b *Batch) Recv(fd int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])),
		uintptr(len(b.headers)), unix.MSG_WAITFORONE, 0, 0)
	return int(n), e
}
