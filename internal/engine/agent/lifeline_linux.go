package agent

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Lifeline returns in, and a context that ends when nothing has been read from it for limit: its controller, or a machine
// between the two, has gone without a word. Serve with both.
func Lifeline(ctx context.Context, in io.Reader, limit time.Duration) (context.Context, io.Reader) {
	ctx, cut := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cut(fmt.Errorf("nothing heard of the controller for %s", limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, &lifeline{in: in, timer: timer, limit: limit}
}

// lifeline is a reader that puts off the end with all that it reads. It is read by one goroutine.
type lifeline struct {
	in    io.Reader
	timer *time.Timer
	limit time.Duration
}

func (l *lifeline) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	// One that has run out has cut already, and is not wound up again.
	if n > 0 && l.timer.Stop() {
		l.timer.Reset(l.limit)
	}
	return n, err
}
