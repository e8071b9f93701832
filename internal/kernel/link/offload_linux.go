package link

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The ethtool commands that package unix has no wrapper for, and the set of strings that names the features.
const (
	ethtoolGetStrings  = 0x1b
	ethtoolGetSetInfo  = 0x37
	ethtoolGetFeatures = 0x3a
	ethtoolSetFeatures = 0x3b
	stringsOfFeatures  = 4
	stringLength       = 32
	maxFeatures        = 128
)

// features is struct ethtool_gfeatures with room for maxFeatures: what a device could change, and what it has.
type features struct {
	cmd, size uint32
	blocks    [maxFeatures / 32]struct{ available, requested, active, neverChanged uint32 }
}

// change is struct ethtool_sfeatures.
type change struct {
	cmd, size uint32
	blocks    [maxFeatures / 32]struct{ valid, requested uint32 }
}

// SegmentationOff makes every device of the namespace but lo refuse super-packets in both directions: no TSO, no GSO
// (inside tunnels neither), no GRO. For a device that keeps a feature (macvlan always
// does) it limits super-packets to one segment. It reads back what is in force.
func (h *Handle) SegmentationOff() error {
	links, err := h.nl.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	return h.withEthtool(func(e *ethtool) error {
		for _, l := range links {
			if l.Attrs().Name == Loopback {
				continue
			}
			if err := h.deviceOff(e, l); err != nil {
				return fmt.Errorf("switch segmentation of %s off: %w", l.Attrs().Name, err)
			}
		}
		return nil
	})
}

func (h *Handle) deviceOff(e *ethtool, l netlink.Link) error {
	name := l.Attrs().Name
	left, err := e.off(name)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := h.nl.LinkSetGSOMaxSegs(l, 1); err != nil {
		return fmt.Errorf("%s stay on, and limiting them: %w", strings.Join(left, ", "), err)
	}
	back, err := h.nl.LinkByName(name)
	if err != nil {
		return err
	}
	if got := back.Attrs().GSOMaxSegs; got != 1 {
		return fmt.Errorf("%s stay on, and super-packets still have up to %d segments", strings.Join(left, ", "), got)
	}
	return nil
}

// Segmentation returns the segmentation and aggregation features that a device has on.
func (h *Handle) Segmentation(dev string) ([]string, error) {
	var on []string
	err := h.withEthtool(func(e *ethtool) (err error) {
		on, err = e.active(dev)
		return err
	})
	return on, err
}

// ethtool is a socket to make ethtool calls on, with the names of the features by bit.
type ethtool struct {
	fd    int
	names []string
}

// withEthtool runs fn with a socket inside the namespace.
func (h *Handle) withEthtool(fn func(*ethtool) error) error {
	e := &ethtool{}
	err := h.ns.Do(func() (err error) {
		e.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("open socket for ethtool: %w", err)
	}
	defer unix.Close(e.fd)
	return fn(e)
}

// off switches off what can be switched off and returns what stays on.
func (e *ethtool) off(dev string) ([]string, error) {
	got, err := e.get(dev)
	if err != nil {
		return nil, err
	}
	req := change{cmd: ethtoolSetFeatures, size: got.size}
	pending := false
	for bit, name := range e.names {
		b, mask := bit/32, uint32(1)<<(bit%32)
		if segments(name) && got.blocks[b].available&mask != 0 && got.blocks[b].active&mask != 0 {
			req.blocks[b].valid |= mask
			pending = true
		}
	}
	if pending {
		if err := e.call(dev, unsafe.Pointer(&req)); err != nil {
			return nil, fmt.Errorf("ethtool set features: %w", err)
		}
	}
	return e.active(dev)
}

// active returns the segmentation features that are on.
func (e *ethtool) active(dev string) ([]string, error) {
	got, err := e.get(dev)
	if err != nil {
		return nil, err
	}
	var on []string
	for bit, name := range e.names {
		if segments(name) && got.blocks[bit/32].active&(1<<(bit%32)) != 0 {
			on = append(on, name)
		}
	}
	return on, nil
}

// segments says whether a feature lets a packet stand for several frames. tx-gso-robust is a property of what may be
// handed to the device, not a feature that makes anything.
func segments(feature string) bool {
	switch feature {
	case "rx-gro", "rx-gro-list", "rx-gro-hw", "rx-lro", "rx-udp-gro-forwarding", "tx-gso-partial", "tx-gso-list":
		return true
	}
	return strings.HasPrefix(feature, "tx-") && strings.HasSuffix(feature, "-segmentation")
}

func (e *ethtool) get(dev string) (*features, error) {
	if err := e.learnNames(dev); err != nil {
		return nil, err
	}
	f := &features{cmd: ethtoolGetFeatures, size: uint32(len(e.names)+31) / 32}
	if err := e.call(dev, unsafe.Pointer(f)); err != nil {
		return nil, fmt.Errorf("ethtool get features: %w", err)
	}
	return f, nil
}

// learnNames asks for the names of the features, which are the same for every device of a kernel.
func (e *ethtool) learnNames(dev string) error {
	if e.names != nil {
		return nil
	}
	info := struct {
		cmd, reserved uint32
		mask          uint64
		count         [1]uint32
	}{cmd: ethtoolGetSetInfo, mask: 1 << stringsOfFeatures}
	if err := e.call(dev, unsafe.Pointer(&info)); err != nil {
		return fmt.Errorf("ethtool get string set: %w", err)
	}
	n := int(info.count[0])
	if n == 0 || n > maxFeatures {
		return fmt.Errorf("the kernel names %d features, want 1 to %d", n, maxFeatures)
	}
	list := struct {
		cmd, set, length uint32
		text             [maxFeatures][stringLength]byte
	}{cmd: ethtoolGetStrings, set: stringsOfFeatures, length: uint32(n)}
	if err := e.call(dev, unsafe.Pointer(&list)); err != nil {
		return fmt.Errorf("ethtool get strings: %w", err)
	}
	for i := range n {
		name, _, _ := bytes.Cut(list.text[i][:], []byte{0})
		e.names = append(e.names, string(name))
	}
	return nil
}

// ifreq is struct ifreq with a pointer for its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

func (e *ethtool) call(dev string, request unsafe.Pointer) error {
	r := ifreq{data: request}
	copy(r.name[:unix.IFNAMSIZ-1], dev)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return errno
	}
	return nil
}
