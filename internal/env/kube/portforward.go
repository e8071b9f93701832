package kube

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	greeting = "cnibench " // the start of the controller's first line; the token follows
	accepted = "open\n"    // the pod's answer to the right token
	// maxLine bounds the length of the controller's first line in bytes, loginLimit the time until the line is complete.
	maxLine    = 256
	loginLimit = 5 * time.Second
	// maxSessions bounds the concurrent connections.
	maxSessions = 64
)

// errRefused means that the pod does not accept the token.
var errRefused = errors.New("it does not accept the token of this run")

// authenticate sends the token to w and waits until the pod accepts it. It fails with errRefused if the pod does not accept
// it. r reads from the same connection; the caller must read on from r, which may have buffered more.
func authenticate(w io.Writer, r *bufio.Reader, token string) error {
	if _, err := io.WriteString(w, greeting+token+"\n"); err != nil {
		return err
	}
	line, err := r.ReadString('\n')
	if err == nil && line == accepted {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errRefused
}

// ServeForwarded serves a run's controller in a pod where exec is refused. The controller connects by a port-forward of the
// API server to a loopback port of the pod's main process, and authenticates with the run's token.
//
//	controller              pod
//	"cnibench TOKEN\n"  ->
//	                    <-  "open\n", then the stream is an agent's; or the end of the stream
//
// It accepts connections from l until ctx ends, then closes l, and returns when the last session has ended. For each
// connection that sends the token it calls session with the stream after the token; session must not close the stream.
func ServeForwarded(ctx context.Context, l net.Listener, token string, session func(context.Context, net.Conn)) error {
	if token == "" {
		return errors.Join(errors.New("an empty token would admit everybody"), l.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept says so
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	slots := make(chan struct{}, maxSessions)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listen for the controller at %s: %w", l.Addr(), err)
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		sessions.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			closeEarly := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer closeEarly()
			if acceptLogin(conn, token) {
				session(ctx, conn)
			}
		})
	}
}

// acceptLogin reads the controller's first line. If it has the right token, acceptLogin writes accepted and returns true. It
// reads byte by byte, so that it consumes nothing of what follows the line.
func acceptLogin(conn net.Conn, token string) bool {
	_ = conn.SetDeadline(time.Now().Add(loginLimit)) // a connection without one fails below
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, b); err != nil || len(line) == maxLine {
			return false
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	sent, ok := strings.CutPrefix(string(line), greeting)
	if !ok || subtle.ConstantTimeCompare([]byte(sent), []byte(token)) != 1 {
		return false
	}
	if _, err := io.WriteString(conn, accepted); err != nil {
		return false
	}
	return conn.SetDeadline(time.Time{}) == nil
}
