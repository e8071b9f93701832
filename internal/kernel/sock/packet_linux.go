package sock

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenPacket opens a socket that receives every frame of the device with an index, 0 for all devices, and whose writes
// leave by that device. flags may have NonBlocking. prepare sets options before the first frame comes.
func OpenPacket(index, flags int, prepare func(fd int) error) (int, error) {
	// Protocol 0 receives nothing until bind names one: no frame of another device slips in before.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err = prepare(fd); err == nil {
		// The kernel wants the number in network order.
		all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
