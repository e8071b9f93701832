package link

import (
	"io"
	"net"
	"strings"
	"testing"
)

// TestReadWireGuard: the process's answer is read, and one that names no peer before its settings is an error.
func TestReadWireGuard(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{"listen_port=5\npublic_key=00\nendpoint=192.0.2.1:5\nallowed_ip=10.0.0.0/8\nerrno=0\n\n", ""},
		{"endpoint=192.0.2.1:5\nerrno=0\n\n", "no public_key is before it"},
		{"allowed_ip=10.0.0.0/8\nerrno=0\n\n", "no public_key is before it"},
		{"public_key=00\nendpoint=x\nerrno=0\n\n", `"endpoint=x"`},
	} {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			_, _ = theirs.Read(make([]byte, 100)) // the request
			_, _ = io.WriteString(theirs, c.answer)
		}()
		port, peers, err := readWireGuard(ours, "wg0")
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.answer, err, c.want)
		case c.want == "" && (err != nil || port != 5 || len(peers) != 1 || peers[0].Endpoint.Port() != 5 || len(peers[0].Allowed) != 1):
			t.Errorf("%q: %d %+v %v", c.answer, port, peers, err)
		}
	}
}
