package kube

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
	if _, err := dialOnce(t.Context(), answers, draws(func(int) {}, used)); err == nil || !strings.Contains(err.Error(), "not tried") {
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
	err = dialUntilAccepted(ctx, refuses, draws(func(n int) {
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
	err = dialUntilAccepted(ctx, refuses, draws(func(n int) {
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
	ended := make(chan error, 1)
	go func() { ended <- Answer(t.Context(), []string{strconv.Itoa(port)}, in, out) }()
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
		draw, seen := newPortPicker(file), map[int]bool{}
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
