// Package pod is what the main process of a run's pod does for its controller: find free ports, try paths, accept
// connections.
package pod

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strconv"
)

// FreePorts writes those of ports that servers can listen on, each with the next one, as a JSON list.
func FreePorts(ctx context.Context, ports []int, w io.Writer) error {
	free := []int{}
	for _, n := range ports {
		if portFree(ctx, n) && portFree(ctx, n+1) {
			free = append(free, n)
		}
	}
	return json.NewEncoder(w).Encode(free)
}

// portFree reports whether a server can listen on a port, for TCP and UDP, on every address.
func portFree(ctx context.Context, port int) bool {
	var config net.ListenConfig
	address := net.JoinHostPort("", strconv.Itoa(port))
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	d, err := config.ListenPacket(ctx, "udp", address)
	return err == nil && d.Close() == nil
}
