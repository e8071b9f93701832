package proc

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullSocketsAreCounted: datagrams that found a full socket count in one place, whether they came by IPv4 or by IPv6.
func TestFullSocketsAreCounted(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			runtime.LockOSThread() // the thread ends with the test, for it stays in the namespace
			if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, os.ErrPermission) {
				t.Skipf("no right to make a network namespace: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			server, err := net.ListenPacket("udp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if err := server.(*net.UDPConn).SetReadBuffer(1); err != nil { // the kernel's least
				t.Fatal(err)
			}
			client, err := net.Dial("udp", server.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, before, after := takeAround(t, func() {
				for range 100 {
					_, _ = client.Write(make([]byte, 1000))
				}
			})
			if lost := after.SNMP["Udp.RcvbufErrors"] - before.SNMP["Udp.RcvbufErrors"]; lost < 50 || lost > 100 {
				t.Errorf("%d of 100 datagrams found the socket full", lost)
			}
		})
	}
}
