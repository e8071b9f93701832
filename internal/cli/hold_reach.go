package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/kube"
)

const (
	// dialLimit bounds one try, dialPause is the time between two.
	dialLimit = time.Second
	dialPause = 100 * time.Millisecond
)

// reach dials every address until it answers or limit is over, and prints what did not with the last reason, in JSON.
func (p *program) reach(ctx context.Context, addresses []string, limit time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	failed := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, address := range addresses {
		all.Go(func() {
			if err := dialUntil(ctx, address); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[address] = err.Error()
			}
		})
	}
	all.Wait()
	return json.NewEncoder(p.stdout).Encode(failed)
}

// dialUntil returns nil when address has taken a connection, or the last error when ctx has ended.
func dialUntil(ctx context.Context, address string) error {
	pause := time.NewTicker(dialPause)
	defer pause.Stop()
	last := ctx.Err()
	for ctx.Err() == nil {
		dialer := net.Dialer{Timeout: dialLimit}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		// Silence says less than a refusal, and the end of the time looks like it.
		var slow net.Error
		if last == nil || !errors.As(err, &slow) || !slow.Timeout() {
			last = err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return last
}

// answer takes connections at ports, and drops them, until stdin ends.
func (p *program) answer(ctx context.Context, ports []string) error {
	var listeners []net.Listener
	var all sync.WaitGroup
	defer all.Wait()
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // Accept says so
		}
	}()
	var config net.ListenConfig
	for _, port := range ports {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort("", port))
		if err != nil {
			return fmt.Errorf("take connections: %w", err)
		}
		listeners = append(listeners, l)
		all.Go(func() { drop(l) })
	}
	if _, err := io.WriteString(p.stdout, kube.Answering); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// drop closes whatever connects to l until l is closed.
func drop(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_ = conn.Close() // there is nothing to lose
		}
	}
}
