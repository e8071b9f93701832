package attach

import "golang.org/x/sys/unix"

// readable says whether a datagram waits at fd.
func readable(fd int) bool {
	b := make([]byte, 8)
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	return err == nil && n > 0
}
