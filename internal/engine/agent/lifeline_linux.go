package agent

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Lifeline returns in, and a context that ends when nothing was read from in for limit: the controller, or a machine on the
// way to it, has failed silently. Call Serve with both.
func Lifeline(ctx context.Context, in io.Reader, limit time.Duration) (context.Context, io.Reader) {
	ctx, cut := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cut(fmt.Errorf("no message from the controller for %s", limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, &lifeline{in: in, timer: timer, limit: limit}
}

// lifeline is a reader that restarts its timer with each read. One goroutine reads it.
type lifeline struct {
	in    io.Reader
	timer *time.Timer
	limit time.Duration
}

func (l *lifeline) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	// A timer that has fired has ended the context, so it does not restart.
	if n > 0 && l.timer.Stop() {
		l.timer.Reset(l.limit)
	}
	return n, err
}
