package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// listening are the states of /proc/net/tcp and udp that a socket has which waits for others: LISTEN, and that of an
// unconnected datagram socket.
var listening = map[string]string{"tcp": "0A", "udp": "07"}

// Listening says whether a socket of this network namespace waits on port; transport is "tcp" or "udp".
func Listening(transport string, port int) (bool, error) {
	for _, family := range []string{"", "6"} {
		table, err := os.ReadFile("/proc/thread-self/net/" + transport + family)
		if errors.Is(err, fs.ErrNotExist) && family != "" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return false, err
		}
		if listens(string(table), listening[transport], port) {
			return true, nil
		}
	}
	return false, nil
}

// listens reads lines of /proc/net/tcp or udp.
func listens(table, state string, port int) bool {
	local := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], local) && f[3] == state {
			return true
		}
	}
	return false
}
