// Package portforward is how a pod's main process lets its own controller in where exec is refused: on a port of the pod's
// loopback, to which the API server's port-forward leads, for whoever says the run's token.
//
//	controller              door
//	"cnibench TOKEN\n"  ->
//	                    <-  "open\n", and from then on the stream is that of an agent; or the end
//
// It knows nothing of Kubernetes, so that the pod's side stays as small as it looks.
package portforward

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
	// word opens what a controller says.
	word = "cnibench "
	// open is the answer to the right token.
	open = "open\n"
	// longest bounds the line of a caller.
	longest = 256
	// patience is how long a caller may take to say it.
	patience = 5 * time.Second
	// guests bounds how many are served at a time.
	guests = 64
)

// ErrShut is the error of Knock when the door does not take the token.
var ErrShut = errors.New("it does not take the token of this run")

// Knock says the token to the door at the other end of a stream, and returns when it is open. r reads what w's other end
// says, and goes on after it.
func Knock(w io.Writer, r *bufio.Reader, token string) error {
	if _, err := io.WriteString(w, word+token+"\n"); err != nil {
		return err
	}
	line, err := r.ReadString('\n')
	if err == nil && line == open {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return ErrShut
}

// Serve lets callers of l in who know the token, until ctx ends; then it closes l and returns when the last has gone.
// Each is handed to guest with a stream that has nothing read from it but the token; guest closes nothing.
func Serve(ctx context.Context, l net.Listener, token string, guest func(context.Context, net.Conn)) error {
	if token == "" {
		return errors.Join(errors.New("a door without a token would be open to everybody"), l.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept says so
	defer stop()
	var inside sync.WaitGroup
	defer inside.Wait()
	room := make(chan struct{}, guests)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("door at %s: %w", l.Addr(), err)
		}
		select {
		case room <- struct{}{}:
		default:
			_ = conn.Close() // a full house has no words either
			continue
		}
		inside.Go(func() {
			defer func() { <-room }()
			defer conn.Close()
			leave := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer leave()
			if answer(conn, token) {
				guest(ctx, conn)
			}
		})
	}
}

// answer reads what a caller says, byte by byte so that nothing of what follows is taken, and opens to the right token.
func answer(conn net.Conn, token string) bool {
	_ = conn.SetDeadline(time.Now().Add(patience)) // a connection that cannot have one fails below
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, b); err != nil || len(line) == longest {
			return false
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	said, ok := strings.CutPrefix(string(line), word)
	if !ok || subtle.ConstantTimeCompare([]byte(said), []byte(token)) != 1 {
		return false
	}
	if _, err := io.WriteString(conn, open); err != nil {
		return false
	}
	return conn.SetDeadline(time.Time{}) == nil
}
