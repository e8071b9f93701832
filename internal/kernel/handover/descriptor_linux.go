package handover

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user at the other end of a Unix connection.
func PeerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, os.NewSyscallError("getsockopt SO_PEERCRED", failed)
	}
	return int(cred.Uid), nil
}

// Send writes a message with descriptors beside it.
func Send(c *net.UnixConn, message []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(message, rights, nil)
	return err
}

// Receive reads into buffer what one Send wrote, or the beginning of it, and the one descriptor beside it; file is nil
// without one.
func Receive(c *net.UnixConn, buffer []byte, name string) (n int, file *os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(buffer, rights)
	if err != nil {
		return n, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:oobn])
	if err != nil {
		return n, nil, nil // nothing beside it
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
			file = os.NewFile(uintptr(fds[0]), name)
		}
	}
	return n, file, nil
}
