package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// held runs hold with args until it ends, and returns its exit code and output.
func held(ctx context.Context, stdin io.Reader, args ...string) (int, string) {
	var out bytes.Buffer
	p := &program{stdin: stdin, stdout: &out, stderr: &out}
	root := p.rootCommand(nil)
	root.SetArgs(append([]string{"hold"}, args...))
	return p.reportError(root.ExecuteContext(ctx)), out.String()
}

// taken returns a port on which somebody listens.
func taken(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestHoldEnds wants no error, when its time is up and when it is told to end.
func TestHoldEnds(t *testing.T) {
	if code, out := held(t.Context(), nil, "--for", "1ms"); code != exitFine || out != "" {
		t.Errorf("code %d: %s", code, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out := held(ctx, nil); code != exitFine || out != "" {
		t.Errorf("code %d: %s", code, out)
	}
	if code, _ := held(t.Context(), nil, "what"); code != exitUsage {
		t.Errorf("code %d", code)
	}
}

// TestFreePorts leaves out a port where somebody listens, for TCP or UDP, on it or on the next.
func TestFreePorts(t *testing.T) {
	tcp := taken(t)
	d, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	udp := d.LocalAddr().(*net.UDPAddr).Port
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().(*net.TCPAddr).Port
	l.Close()
	code, out := held(t.Context(), nil, "--free", strconv.Itoa(tcp), strconv.Itoa(tcp-1), strconv.Itoa(udp), strconv.Itoa(free))
	var got []int
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitFine {
		t.Fatalf("code %d: %s", code, out)
	}
	for _, port := range got {
		if port == tcp || port == tcp-1 || port == udp {
			t.Errorf("port %d is called free", port)
		}
	}
	if code, out := held(t.Context(), nil, "--free", "0", "x", "65535"); code != exitUsage || strings.Count(out, "want 1 to 65534") != 3 {
		t.Errorf("code %d: %s", code, out)
	}
}

// TestReach dials what answers, and names what does not.
func TestReach(t *testing.T) {
	answers := net.JoinHostPort("127.0.0.1", strconv.Itoa(taken(t)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := l.Addr().String()
	l.Close()
	code, out := held(t.Context(), nil, "--reach", "--for", "300ms", answers, silent)
	failed := map[string]string{}
	if err := json.Unmarshal([]byte(out), &failed); err != nil || code != exitFine {
		t.Fatalf("code %d: %s", code, out)
	}
	if len(failed) != 1 || !strings.Contains(failed[silent], "refused") {
		t.Errorf("failed: %v", failed)
	}
}

// TestReachWaits has the address answer only after a while.
func TestReachWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	go func() {
		time.Sleep(300 * time.Millisecond)
		if late, err := net.Listen("tcp", address); err == nil {
			t.Cleanup(func() { late.Close() })
		}
	}()
	if _, out := held(t.Context(), nil, "--reach", "--for", "30s", address); out != "{}\n" {
		t.Errorf("%s", out)
	}
}

// TestHoldAnswer refuses a port in use.
func TestHoldAnswer(t *testing.T) {
	if code, out := held(t.Context(), strings.NewReader(""), "--answer", strconv.Itoa(taken(t))); code != exitFailed || !strings.Contains(out, "in use") {
		t.Errorf("code %d: %s", code, out)
	}
}

// TestReachComesFromAfar: the dialled end sees such a port.
func TestReachComesFromAfar(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ports := make(chan int, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			ports <- c.RemoteAddr().(*net.TCPAddr).Port
			c.Close()
		}
	}()
	if code, out := held(t.Context(), nil, "--reach", "--for", "5s", l.Addr().String()); code != 0 || out != "{}\n" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	var first, last int
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &first, &last)
	}
	if port := <-ports; last > 0 && port >= first && port <= last {
		t.Errorf("it came from port %d, which the system gives to trials (%d to %d)", port, first, last)
	}
}
