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
	// largest is the maximum length of a frame with its virtio header: a whole super-packet.
	largest = 65536 + 128
	// most is how many bytes of frames may be delayed at a time; further frames are lost.
	most = 64 << 20
	// socketBuffer is the kernel's buffer for frames that were not read yet.
	socketBuffer = 8 << 20
	// look is how often an idle line checks whether it was closed.
	look = 20 * time.Millisecond
	// spin is the last part of the wait for a due frame. In it the thread polls instead of sleeping, so that a slow
	// wake-up does not delay the frame.
	spin = 80 * time.Microsecond
)

// pipe carries frames from one packet socket to another.
type pipe struct {
	from, to int
	o        Options
	over     atomic.Bool
	impaired atomic.Bool

	held  []frame // in the order of arrival, and so of sending
	bytes int
	owed  float64 // the sum of Loss over all frames, minus the number of lost frames
	room  []byte
	oob   []byte
}

// frame is a delayed frame, with its virtio header.
type frame struct {
	data []byte
	at   int64 // when to send it, in ns of CLOCK_REALTIME, the clock of the kernel's time stamps
}

func newPipe(from, to int, o Options) *pipe {
	return &pipe{from: from, to: to, o: o, room: make([]byte, largest), oob: make([]byte, 128)}
}

// carryFrames carries frames on its own thread until over is set. It sends nil to began when it starts, or the error if
// it cannot start.
func (p *pipe) carryFrames(began chan<- error) {
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
		took := p.takeFrame()
		if wait := p.sendDueFrames(); !took && wait > 0 {
			p.awaitFrame(wait)
		}
	}
}

// takeFrame reads one frame and sends, delays or loses it. It returns false if no frame is pending.
func (p *pipe) takeFrame() bool {
	n, oobn, _, _, err := unix.Recvmsg(p.from, p.room, p.oob, unix.MSG_DONTWAIT)
	if err != nil || n == 0 {
		return false
	}
	if !p.impaired.Load() {
		p.sendFrame(p.room[:n])
		return true
	}
	p.owed += p.o.Loss
	switch {
	case p.owed >= 1-1e-9:
		p.owed--
	case p.o.Delay == 0:
		p.sendFrame(p.room[:n])
	case p.bytes+n <= most:
		p.bytes += n
		p.held = append(p.held, frame{append([]byte(nil), p.room[:n]...), arrivalTime(p.oob[:oobn]) + int64(p.o.Delay)})
	}
	return true
}

// sendDueFrames sends the delayed frames that are due. It returns the time until the next frame is due, look if none is
// delayed.
func (p *pipe) sendDueFrames() time.Duration {
	for len(p.held) > 0 {
		f := p.held[0]
		if wait := f.at - realtimeNow(); wait > 0 {
			return time.Duration(wait)
		}
		p.sendFrame(f.data)
		p.held[0].data = nil
		p.held = p.held[1:]
		p.bytes -= len(f.data)
	}
	return look
}

// sendFrame sends a frame; a frame that the device does not accept is lost, as on a wire.
func (p *pipe) sendFrame(b []byte) { _, _ = unix.Write(p.to, b) }

// awaitFrame sleeps until a frame arrives, or until shortly before wait is over, at most look.
func (p *pipe) awaitFrame(wait time.Duration) {
	if wait = min(wait, look) - spin; wait <= 0 {
		thread.Yield()
		return
	}
	ts := unix.NsecToTimespec(int64(wait))
	// An early return is harmless: everything is checked again.
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(p.from), Events: unix.POLLIN}}, &ts, nil)
}

func realtimeNow() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &ts) // exists on every Linux
	return ts.Nano()
}

// arrivalTime returns the time at which the kernel received a frame, in ns of CLOCK_REALTIME. oob has the control
// messages of the frame. It returns the current time if they have no time stamp.
func arrivalTime(oob []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return realtimeNow()
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		}
	}
	return realtimeNow()
}

// openPacketSocket opens a packet socket of a device. Reads return the frames that arrive at the device. Writes send frames
// from the device. Frames have a virtio header in both directions.
func openPacketSocket(device string) (fd int, err error) {
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
