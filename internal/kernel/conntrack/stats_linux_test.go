package conntrack

import (
	"net"
	"testing"
)

// TestReadStats sends a TCP header that is cut off, which belongs to no connection.
func TestReadStats(t *testing.T) {
	ns := node(t, translate)
	before, err := ReadStats(ns)
	if err != nil {
		t.Fatal(err)
	}
	if before != (Stats{}) {
		t.Errorf("a fresh namespace counted %+v", before)
	}
	err = ns.Do(func() error {
		c, err := net.Dial("ip4:tcp", "10.0.0.1")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte{1, 2, 3, 4})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := ReadStats(ns)
	if err != nil || after.Invalid == 0 || after.Refused() != 0 {
		t.Errorf("after a cut header: %+v, %v", after, err)
	}
}
