package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// held runs hold with args until it ends, and returns its exit code and output.
func held(ctx context.Context, stdin io.Reader, args ...string) (int, string) {
	var out bytes.Buffer
	p := &program{stdin: stdin, stdout: &out, stderr: &out}
	root := p.root(nil)
	root.SetArgs(append([]string{"hold"}, args...))
	return p.finish(root.ExecuteContext(ctx)), out.String()
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
		time.Sleep(3 * dialPause)
		if late, err := net.Listen("tcp", address); err == nil {
			t.Cleanup(func() { late.Close() })
		}
	}()
	if _, out := held(t.Context(), nil, "--reach", "--for", "30s", address); out != "{}\n" {
		t.Errorf("%s", out)
	}
}

// draws returns what gives these ports, and the last one for ever. It calls seen with the number of each draw.
func draws(seen func(n int), ports ...int) func() int {
	n := 0
	return func() int {
		n++
		seen(n)
		return ports[min(n, len(ports))-1]
	}
}

// TestReachTakesTheNextPort: a port of ours that is in use is no reason why a path was not reached.
func TestReachTakesTheNextPort(t *testing.T) {
	answers, used := net.JoinHostPort("127.0.0.1", strconv.Itoa(taken(t))), taken(t)
	conn, err := dialOnce(t.Context(), answers, draws(func(int) {}, used, used, 0))
	if err != nil {
		t.Fatalf("with a port that is free: %v", err)
	}
	conn.Close()
	if _, err := dialOnce(t.Context(), answers, draws(func(int) {}, used)); err == nil || !strings.Contains(err.Error(), "it was not tried") {
		t.Errorf("without: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refuses := l.Addr().String()
	l.Close()
	// Refused once; then no port is free; then the time is over.
	ctx, cancel := context.WithCancel(t.Context())
	err = dialUntil(ctx, refuses, draws(func(n int) {
		if n > 1+portTries {
			cancel()
		}
	}, 0, used))
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the path refused, and the reason is %v", err)
	}
	// No port is free; then one is, and the path refuses; then the time is over.
	ctx, cancel = context.WithCancel(t.Context())
	ports := append(slices.Repeat([]int{used}, portTries), 0)
	err = dialUntil(ctx, refuses, draws(func(n int) {
		if n > portTries+1 {
			cancel()
		}
	}, ports...))
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the path refused at last, and the reason is %v", err)
	}
}

// TestAnswer takes connections until its input ends.
func TestAnswer(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	in, end := io.Pipe()
	said, out := io.Pipe()
	p := &program{stdin: in, stdout: out, stderr: io.Discard}
	ended := make(chan error, 1)
	go func() { ended <- p.answer(t.Context(), []string{strconv.Itoa(port)}) }()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || line != "answering\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for range 3 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%v", err)
		}
		conn.Close()
	}
	end.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if code, out := held(t.Context(), strings.NewReader(""), "--answer", strconv.Itoa(taken(t))); code != exitFailed || !strings.Contains(out, "in use") {
		t.Errorf("code %d: %s", code, out)
	}
}

// TestPortsApart: what tries a path comes from ports that no trial's connections come from.
func TestPortsApart(t *testing.T) {
	for text, want := range map[string][2]int{
		"32768\t60999\n": {61000, 65535}, "1024 65535": {0, 0}, "10000 65000\n": {1024, 9999}, "nonsense": {61000, 65535}, "32768 65535": {1024, 32767},
	} {
		file := filepath.Join(t.TempDir(), "range")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		draw, seen := portsApart(file), map[int]bool{}
		for range 200 {
			port := draw()
			seen[port] = true
			if port < want[0] || port > want[1] {
				t.Fatalf("%q: port %d, want %v", text, port, want)
			}
		}
		if want[0] > 0 && len(seen) < 150 {
			t.Errorf("%q: %d ports in 200 tries", text, len(seen))
		}
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
	if text, err := os.ReadFile(portRangeFile); err == nil {
		_, _ = fmt.Sscan(string(text), &first, &last)
	}
	if port := <-ports; last > 0 && port >= first && port <= last {
		t.Errorf("it came from port %d, which the system gives to trials (%d to %d)", port, first, last)
	}
}
