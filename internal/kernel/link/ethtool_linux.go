package link

import (
	"bytes"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtool reads and sets the features of a namespace's devices by the ioctl of that name
// (include/uapi/linux/ethtool.h). Every buffer is on the heap, and is passed to the kernel as a pointer. A library that
// passed stack addresses as plain numbers lost the kernel's answer when the stack moved.
type ethtool struct{ socket int }

// feature is one feature of a device: its bit, whether it can be changed, and whether it is on.
type feature struct {
	bit               int
	available, active bool
}

const (
	featureStrings = 4  // ETH_SS_FEATURES
	stringLength   = 32 // ETH_GSTRING_LEN
	perBlock       = 32 // features in a block
	// getWords is the number of 32-bit words of a block that is read: available, requested, active, never changed.
	getWords = 4
	// setWords is the number of 32-bit words of a block that is set: valid, requested.
	setWords = 2
)

// request is struct ifreq.
type request struct {
	device [unix.IFNAMSIZ]byte
	data   unsafe.Pointer
	_      [16]byte
}

// callIoctl passes the words of a request to the kernel, which writes its answer into them. The first word is the command.
func (e ethtool) callIoctl(device string, words []uint32) error {
	r := &request{data: unsafe.Pointer(unsafe.SliceData(words))}
	copy(r.device[:unix.IFNAMSIZ-1], device)
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(e.socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(r))); failed != 0 {
		return os.NewSyscallError("ioctl SIOCETHTOOL", failed)
	}
	return nil
}

// features returns the features of a device, by the kernel's names.
func (e ethtool) features(device string) (map[string]feature, error) {
	// cmd, reserved, a mask of 64 bits, and the number of strings in the set of its one bit.
	sizes := []uint32{unix.ETHTOOL_GSSET_INFO, 0, 1 << featureStrings, 0, 0}
	if err := e.callIoctl(device, sizes); err != nil {
		return nil, err
	}
	n := int(sizes[4])
	const head = 3 // cmd, set, length
	names := make([]uint32, head+n*stringLength/4)
	names[0], names[1], names[2] = unix.ETHTOOL_GSTRINGS, featureStrings, uint32(n)
	if err := e.callIoctl(device, names); err != nil {
		return nil, err
	}
	blocks := (n + perBlock - 1) / perBlock
	states := make([]uint32, 2+blocks*getWords)
	states[0], states[1] = unix.ETHTOOL_GFEATURES, uint32(blocks)
	if err := e.callIoctl(device, states); err != nil {
		return nil, err
	}
	text := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(names[head:]))), n*stringLength)
	all := map[string]feature{}
	for bit := range n {
		name, _, _ := bytes.Cut(text[bit*stringLength:(bit+1)*stringLength], []byte{0})
		block, mask := states[2+bit/perBlock*getWords:], uint32(1)<<(bit%perBlock)
		if len(name) > 0 {
			all[string(name)] = feature{bit, block[0]&mask != 0, block[2]&mask != 0}
		}
	}
	return all, nil
}

// setFeatures switches the features in want on or off; known must contain each of them. Features that cannot be changed stay
// as they are, without an error.
func (e ethtool) setFeatures(device string, known map[string]feature, want map[string]bool) error {
	blocks := 0
	for _, f := range known { // the kernel wants all blocks
		blocks = max(blocks, f.bit/perBlock+1)
	}
	words := make([]uint32, 2+blocks*setWords)
	words[0], words[1] = unix.ETHTOOL_SFEATURES, uint32(blocks)
	for name, on := range want {
		bit := known[name].bit
		block, mask := words[2+bit/perBlock*setWords:], uint32(1)<<(bit%perBlock)
		block[0] |= mask
		if on {
			block[1] |= mask
		}
	}
	return e.callIoctl(device, words)
}
