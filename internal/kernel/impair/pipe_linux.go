package impair

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// largest is the maximum length of a frame with its header: a whole super-packet.
	largest = 65536 + 128
	// most bounds the bytes of delayed frames; beyond that frames are lost.
	most = 64 << 20
	// socketBuffer is the kernel's buffer for frames that were not read yet.
	socketBuffer = 8 << 20
	// look is how often an idle line checks whether it is closed.
	look = 20 * time.Millisecond
	// spin is how long before its time a frame is awaited without sleeping, so that a slow wake-up does not delay it.
	spin = 80 * time.Microsecond
)

// pipe carries frames one way.
type pipe struct {
	from, to int
	o        Options
	over     atomic.Bool
	impaired atomic.Bool

	held  []frame // in the order of coming in, and so of leaving
	bytes int
	owed  float64 // of a loss
	room  []byte
	oob   []byte
}

// frame is a delayed frame, with its virtio header.
type frame struct {
	data []byte
	at   int64 // when it leaves, by CLOCK_REALTIME, the clock of the kernel's time stamps
}

func newPipe(from, to int, o Options) *pipe {
	return &pipe{from: from, to: to, o: o, room: make([]byte, largest), oob: make([]byte, 128)}
}

// carry is the thread; it reports once whether it could begin.
func (p *pipe) carry(began chan<- error) {
	runtime.LockOSThread() // never unlocked: it is confined, and ends with the goroutine
	err := thread.SharpTimers()
	if len(p.o.CPUs) > 0 {
		err = errors.Join(err, thread.SetCPUs(p.o.CPUs))
	}
	began <- err
	if err != nil {
		return
	}
	for !p.over.Load() {
		took := p.take()
		if wait := p.release(); !took && wait > 0 {
			p.await(wait)
		}
	}
}

// take reads one frame; it returns false if no frame is pending.
func (p *pipe) take() bool {
	n, oobn, _, _, err := unix.Recvmsg(p.from, p.room, p.oob, unix.MSG_DONTWAIT)
	if err != nil || n == 0 {
		return false
	}
	if !p.impaired.Load() {
		p.send(p.room[:n])
		return true
	}
	p.owed += p.o.Loss
	switch {
	case p.owed >= 1-1e-9:
		p.owed--
	case p.o.Delay == 0:
		p.send(p.room[:n])
	case p.bytes+n <= most:
		p.bytes += n
		p.held = append(p.held, frame{append([]byte(nil), p.room[:n]...), stamp(p.oob[:oobn]) + int64(p.o.Delay)})
	}
	return true
}

// release sends the frames that are due and returns the time until the next one, which may be infinite.
func (p *pipe) release() time.Duration {
	for len(p.held) > 0 {
		f := p.held[0]
		if wait := f.at - realtime(); wait > 0 {
			return time.Duration(wait)
		}
		p.send(f.data)
		p.held[0].data = nil
		p.held = p.held[1:]
		p.bytes -= len(f.data)
	}
	return look
}

// send sends a frame; a frame that the device does not accept is lost, as on a wire.
func (p *pipe) send(b []byte) { _, _ = unix.Write(p.to, b) }

// await sleeps until a frame arrives or shortly before the next is due.
func (p *pipe) await(wait time.Duration) {
	if wait = min(wait, look) - spin; wait <= 0 {
		thread.Yield()
		return
	}
	ts := unix.NsecToTimespec(int64(wait))
	// An early return is harmless: everything is checked again.
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(p.from), Events: unix.POLLIN}}, &ts, nil)
}

func realtime() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts) // exists on every Linux
	return ts.Nano()
}

// stamp returns when the kernel received a frame, from its control message; without that message, now.
func stamp(oob []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return realtime()
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		}
	}
	return realtime()
}

// packetSocket opens a socket that reads what arrives at a device, and whose writes are sent there.
func packetSocket(device string) (fd int, err error) {
	at, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	return sock.OpenPacket(at.Index, 0, func(fd int) error {
		for _, set := range []struct {
			name                 string
			level, option, value int
		}{
			{"PACKET_VNET_HDR", unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
			{"PACKET_IGNORE_OUTGOING", unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
			{"SO_TIMESTAMPNS", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		} {
			if err := unix.SetsockoptInt(fd, set.level, set.option, set.value); err != nil {
				return os.NewSyscallError("setsockopt "+set.name, err)
			}
		}
		// Without the right to a large buffer the system's limit applies; frames that do not fit are lost.
		return errors.Join(sock.SetReceiveBuffer(fd, socketBuffer), sock.SetSendBuffer(fd, socketBuffer))
	})
}
