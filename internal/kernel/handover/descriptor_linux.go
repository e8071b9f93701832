package handover

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user id of the process at the other end of a Unix connection.
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

// Send writes a message with attached descriptors. The caller still owns the descriptors.
func Send(c *net.UnixConn, message []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(message, rights, nil)
	return err
}

// Receive reads the message of one Send, or the part of it that fits into buffer, and returns the descriptor attached
// to it. file is nil unless exactly one descriptor is attached; its name is name.
func Receive(c *net.UnixConn, buffer []byte, name string) (n int, file *os.File, err error) {
	n, files, err := receiveAll(c, buffer, name)
	if len(files) == 1 {
		return n, files[0], err
	}
	closeAll(files)
	return n, nil, err
}

// mostFiles is the maximum number of descriptors in a message.
const mostFiles = 2

// receiveAll reads a message like Receive, but returns up to mostFiles attached descriptors.
func receiveAll(c *net.UnixConn, buffer []byte, name string) (n int, files []*os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(4*mostFiles))
	n, oobn, _, _, err := c.ReadMsgUnix(buffer, rights)
	if err != nil {
		return n, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:oobn])
	if err != nil {
		return n, nil, nil // no valid control message
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), name))
		}
	}
	return n, files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
