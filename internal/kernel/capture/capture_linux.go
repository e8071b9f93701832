package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// defaultBuffer is the default of Options.Buffer, in bytes: room for a thousand or more frames of 1,500 bytes.
const defaultBuffer = 8 << 20

// Options define what is captured. The zero value captures on every device of the namespace.
type Options struct {
	// Device is the name of the device to listen on; "" for all, including later ones.
	Device string
	// Buffer is the number of bytes that the kernel may keep until they are read; 0 for 8 MiB. Frames beyond it are
	// lost, and counted.
	Buffer int
	// Mark is a byte sequence. Frames with Mark in their kept part have Frame.Marked set; nil marks no frame.
	Mark []byte
}

// Capture is an open packet socket. It is not safe for concurrent use.
type Capture struct {
	ns   *netns.NS
	file *os.File
	raw  syscall.RawConn
	// names maps the index of a device to its name.
	names map[int]string
	mark  []byte
	buf   [snapLength]byte
	// oob has the control message of a frame: its VLAN tag is not among its bytes.
	oob [64]byte
}

// LostError means that the socket's buffer overflowed, so frames are missing from the capture.
type LostError struct{ Frames int }

func (e *LostError) Error() string {
	return fmt.Sprintf("capture lost %d frames: its buffer was full", e.Frames)
}

// Open begins to capture in ns, which must stay open until Close. It needs CAP_NET_RAW there. It captures the frames
// that pass after it returns. A frame between two devices of the namespace is captured on each.
func Open(ns *netns.NS, o Options) (*Capture, error) {
	c := &Capture{ns: ns, names: map[int]string{}, mark: o.Mark}
	err := ns.Do(func() error {
		index := 0
		if o.Device != "" {
			device, err := net.InterfaceByName(o.Device)
			if err != nil {
				return err
			}
			index = device.Index
			c.names[index] = o.Device
		}
		// The forced size needs CAP_NET_ADMIN over the machine; without it, the limit of net.core.rmem_max applies.
		fd, err := sock.OpenPacket(index, sock.NonBlocking, func(fd int) error {
			if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
				return os.NewSyscallError("setsockopt PACKET_AUXDATA", err)
			}
			return sock.SetReceiveBuffer(fd, cmp.Or(o.Buffer, defaultBuffer))
		})
		if err == nil {
			c.file = os.NewFile(uintptr(fd), "packet socket")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("capture on %s: %w", describeDevice(o.Device), err)
	}
	if c.raw, err = c.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("capture on %s: %w", describeDevice(o.Device), err), c.file.Close())
	}
	return c, nil
}

func describeDevice(device string) string {
	if device == "" {
		return "all devices"
	}
	return device
}

// Drain returns the frames since the last call, in order, without waiting. If the buffer overflowed, it returns the
// kept frames with a *LostError.
func (c *Capture) Drain() ([]Frame, error) {
	var frames []Frame
	for {
		f, err := c.readFrame(false)
		if errors.Is(err, unix.EAGAIN) {
			return frames, c.lostError()
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// Until waits until want accepts a frame or ctx is done. It returns all frames up to then, the accepted one last. If
// ctx ended first, the error wraps its cause. If the buffer overflowed, the error wraps a *LostError.
func (c *Capture) Until(ctx context.Context, want func(Frame) bool) ([]Frame, error) {
	if err := c.file.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("set the deadline of a capture: %w", err)
	}
	// The end of ctx wakes the reader by a deadline in the past. The next call must not see that deadline, so this one
	// returns only after the function has ended.
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = c.file.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed file, which also wakes the reader
	})
	defer func() {
		if !stop() {
			<-woken
		}
	}()
	var frames []Frame
	for {
		f, err := c.readFrame(true)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return frames, errors.Join(fmt.Errorf("wait for a frame: %w", context.Cause(ctx)), c.lostError())
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
		if want(f) {
			return frames, c.lostError()
		}
	}
}

// Close ends the capture. Frames that were not read are dropped.
func (c *Capture) Close() error { return c.file.Close() }

// readFrame reads one frame. If no frame is queued, it waits for one, or fails with EAGAIN if wait is false.
func (c *Capture) readFrame(wait bool) (Frame, error) {
	var n, oob int
	var from unix.Sockaddr
	var err error
	receive := func(fd uintptr) bool {
		for {
			// MSG_TRUNC makes the kernel return the true length of a frame that is longer than the buffer.
			n, oob, _, from, err = unix.Recvmsg(int(fd), c.buf[:], c.oob[:], unix.MSG_TRUNC|unix.MSG_DONTWAIT)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	}
	var failed error
	if wait {
		failed = c.raw.Read(receive)
	} else {
		failed = c.raw.Control(func(fd uintptr) { receive(fd) })
	}
	if failed != nil {
		return Frame{}, fmt.Errorf("read a captured frame: %w", failed)
	}
	if err != nil {
		return Frame{}, fmt.Errorf("read a captured frame: %w", os.NewSyscallError("recvmsg", err))
	}
	f := c.decodeBuffer(n, from)
	if f.Ethernet != nil {
		f.Ethernet.VLAN = vlanOf(c.oob[:oob])
	}
	return f, nil
}

// vlanOf returns the VLAN of a frame by its control messages, 0 without a tag.
func vlanOf(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA || len(m.Data) < int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
			continue
		}
		if a := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])); a.Status&unix.TP_STATUS_VLAN_VALID != 0 {
			return int(a.Vlan_tci & 0xfff)
		}
	}
	return 0
}

// decodeBuffer decodes the frame of n bytes in the buffer. from is the device of the frame; its type determines whether the
// frame has a link header.
func (c *Capture) decodeBuffer(n int, from unix.Sockaddr) Frame {
	b := c.buf[:min(n, len(c.buf))]
	link, ok := from.(*unix.SockaddrLinklayer)
	if !ok {
		return Decode(b, n)
	}
	var f Frame
	switch link.Hatype {
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
		f = Decode(b, n)
	default:
		f = DecodeIP(b, n)
	}
	f.Device = c.deviceName(link.Ifindex)
	f.Outgoing = link.Pkttype == unix.PACKET_OUTGOING
	f.Marked = len(c.mark) > 0 && bytes.Contains(b, c.mark)
	return f
}

// deviceName returns the name of a device, or "#" and its index if the device is gone.
func (c *Capture) deviceName(index int) string {
	if _, known := c.names[index]; !known {
		err := c.ns.Do(func() error {
			device, err := net.InterfaceByIndex(index)
			if err == nil {
				c.names[index] = device.Name
			}
			return err
		})
		if err != nil {
			c.names[index] = fmt.Sprintf("#%d", index)
		}
	}
	return c.names[index]
}

// lostError returns a *LostError if frames did not fit into the buffer since the last call. It fails with another error
// if the lost frames cannot be counted.
func (c *Capture) lostError() error {
	var stats *unix.TpacketStats
	var err error
	failed := c.raw.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	switch {
	case failed != nil:
		return fmt.Errorf("count lost frames: %w", failed)
	case err != nil:
		return fmt.Errorf("count lost frames: %w", os.NewSyscallError("getsockopt PACKET_STATISTICS", err))
	case stats.Drops > 0:
		return &LostError{Frames: int(stats.Drops)}
	}
	return nil
}
