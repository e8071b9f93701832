package proc

import (
	"net"
	"testing"
)

func TestListening(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if up, err := Listening("tcp", port); !up || err != nil {
			t.Errorf("%s: %v, %v", address, up, err)
		}
		local := c.LocalAddr().(*net.TCPAddr).Port
		if up, err := Listening("tcp", local); up || err != nil {
			t.Errorf("%s: a connected socket listens: %v", address, err)
		}
		l.Close()
		c.Close()
		if up, err := Listening("tcp", port); up || err != nil {
			t.Errorf("%s, closed: %v, %v", address, up, err)
		}
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	port := u.LocalAddr().(*net.UDPAddr).Port
	if up, err := Listening("udp", port); !up || err != nil {
		t.Errorf("udp: %v, %v", up, err)
	}
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000
short
`
	for port, want := range map[int]bool{8080: true, 8081: false, 80: false} {
		if got := hasListener(table, "0A", port); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
}
