package sock

import (
	"net"
	"testing"
)

// TestAPortThatIsStillHeld calls from a port that another socket of ours has not let go of, as one that is closed may
// not for the moment in which the process is copied.
func TestAPortThatIsStillHeld(t *testing.T) {
	var from net.Addr
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		d := net.Dialer{Control: ReuseAddress, LocalAddr: from}
		c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if from != nil && c.LocalAddr().String() != from.String() {
			t.Errorf("called from %s, want %s", c.LocalAddr(), from)
		}
		from = c.LocalAddr()
	}
}
