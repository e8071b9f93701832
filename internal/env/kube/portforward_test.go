package kube

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// serve listens and echoes what a session sends.
func serve(t *testing.T, token string) (address string, shut func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- ServeForwarded(ctx, l, token, func(_ context.Context, c net.Conn) { _, _ = io.Copy(c, c) })
	}()
	return l.Addr().String(), func() error { cancel(); return <-served }
}

func TestAuthenticate(t *testing.T) {
	address, shut := serve(t, "sesame")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	if err := authenticate(conn, r, "sesame"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := shut(); err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("a session outlives its listener")
	}
}

// TestForwardedRefused: a connection without the greeting and the token gets no answer.
func TestForwardedRefused(t *testing.T) {
	address, shut := serve(t, "sesame")
	for _, said := range []string{"cnibench sesam\n", "cnibench sesames\n", "cnibench \n", "sesame\n", "GET / HTTP/1.1\r\n\r\n", "\n", strings.Repeat("x", maxLine+1), "cnibench sesame"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		// The listener may close before all is sent.
		_, _ = io.WriteString(conn, said)
		_ = conn.(*net.TCPConn).CloseWrite()
		if err := conn.SetReadDeadline(time.Now().Add(2 * loginLimit)); err != nil {
			t.Fatal(err)
		}
		if heard, err := io.ReadAll(conn); len(heard) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q hears %q, %v", said, heard, err)
		}
		conn.Close()
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := authenticate(conn, bufio.NewReader(conn), "open"); !errors.Is(err, errRefused) {
		t.Errorf("the wrong token: %v", err)
	}
	if err := shut(); err != nil {
		t.Error(err)
	}
}

func TestNoToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ServeForwarded(t.Context(), l, "", nil); err == nil {
		t.Error("an empty token is accepted")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener stays open: %v", err)
	}
}
