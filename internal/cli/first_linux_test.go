package cli

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube"
)

// TestFirstRequest fills in the times of an answered request by the wall clock, and the reason of one without an answer.
func TestFirstRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.CopyN(c, c, 1)
			}()
		}
	}()
	to := netip.MustParseAddrPort(l.Addr().String())
	r := kube.First{Begin: time.Now().UnixNano()}
	sendFirstRequest(t.Context(), to, 20*time.Second, &r)
	if r.Kind != "" || r.Connected < r.Begin || r.Answered < r.Connected || r.Answered > time.Now().UnixNano() || r.Dials < 1 || r.DialNs <= 0 {
		t.Errorf("%+v", r)
	}
	l.Close()
	r = kube.First{Begin: time.Now().UnixNano()}
	sendFirstRequest(t.Context(), to, 20*time.Millisecond, &r)
	if r.Kind != "connection refused" || r.Failure == "" || r.Answered != 0 || r.Dials < 2 {
		t.Errorf("%+v", r)
	}
}
