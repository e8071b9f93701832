package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// heartbeatLimit bounds the silence of an agent, helloLimit the wait for its hello. An agent sends a heartbeat each
// second. On a busy machine, and behind an API server, heartbeats have been 3 s late. After eight missing heartbeats
// the agent counts as lost.
const (
	heartbeatLimit = 8 * time.Second
	helloLimit     = 15 * time.Second
)

// Client is the controller's end of one agent. One goroutine calls Prepare, Start and Wait in this order, for one
// trial after another, and RoundTrip between them. Another goroutine may call Leave and Return while the first waits.
// Cancel and Close may be called by any goroutine at any moment.
//
// Every error that ends the conversation wraps an *Error, whose Kind can be counted. After KindGone, KindLost,
// KindProtocol or KindVersion the client is unusable: Close it and Dial again.
type Client struct {
	// HeartbeatLimit is how long the agent may be silent while a message is expected. Set it before Prepare.
	HeartbeatLimit time.Duration

	name   string
	hello  Hello
	stream io.ReadWriteCloser
	enc    *Encoder

	mu    sync.Mutex
	state answers
	// changed is closed and replaced when state changes: a Wait, and a concurrent Leave or Return, then look again. The
	// reading goroutine never waits for them, so an agent never blocks on its own output.
	changed chan struct{}
	// left is closed by Close.
	left chan struct{}
	once sync.Once
	// roundTrip is the shortest time so far between a message to the agent and its answer.
	roundTrip time.Duration
}

// answers is what the agent has sent about the current trial. Its size is bounded, whatever the agent sends.
type answers struct {
	trial     uint64
	abandoned bool
	heard     time.Time
	hello     *Hello
	ready     *Ready
	started   bool
	// rolled counts leaves and returns.
	rolled int
	// stands is the trial's state by the last heartbeat.
	stands string
	done   *sample.Observation
	failed *Error
	// gone is why no more messages will come.
	gone *Error
}

// Dial starts the agent of e and reads its hello. It fails if the agent has another version of the protocol. On an
// error nothing is left running.
func Dial(ctx context.Context, e Endpoint) (*Client, error) {
	stream, err := e.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("agent at %s: %w: %w", e.Name, &Error{Kind: KindStart, Message: "it could not be started"}, err)
	}
	c := &Client{HeartbeatLimit: heartbeatLimit, name: e.Name, stream: stream, enc: NewEncoder(stream), changed: make(chan struct{}), left: make(chan struct{})}
	c.state.heard = time.Now()
	go c.readMessages()
	if e.Lifeline > 0 {
		go c.sendHeartbeats(e.Lifeline / 3)
	}
	a, err := c.awaitAnswer(ctx, TypeHello, func(a answers) bool { return a.hello != nil })
	if err == nil {
		c.hello = *a.hello
		if c.hello.Version != Version {
			err = c.wrapError(&Error{Kind: KindVersion, Message: fmt.Sprintf("the agent speaks version %d of the protocol, this controller %d: use the same cnibench at both ends", c.hello.Version, Version)})
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Hello returns the agent's hello.
func (c *Client) Hello() Hello { return c.hello }

// Gone reports whether the conversation is over.
func (c *Client) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.gone != nil
}

// Prepare begins a new trial and returns when the agent is ready: the server listens, the client is connected. If an
// earlier trial has not ended, such as a server's whose client failed, Prepare first cancels it and drops its answer.
func (c *Client) Prepare(ctx context.Context, p Prepare) (Ready, error) {
	c.mu.Lock()
	earlier := c.state
	c.state = answers{trial: earlier.trial + 1, heard: time.Now(), hello: earlier.hello, gone: earlier.gone}
	trial := c.state.trial
	c.mu.Unlock()
	if earlier.trial > 0 && earlier.done == nil && earlier.failed == nil {
		if err := c.send(ctx, Message{Type: TypeCancel, Trial: earlier.trial}); err != nil {
			return Ready{}, err
		}
	}
	a, err := c.sendAndAwait(ctx, Message{Type: TypePrepare, Trial: trial, Prepare: &p}, func(a answers) bool { return a.ready != nil }, TypeReady)
	if err != nil {
		return Ready{}, err
	}
	return *a.ready, nil
}

// Start lets the prepared trial run after delay, and returns when the agent has confirmed. Start the server first: on a
// busy machine the client may otherwise send before the server measures. If a trial fails after it has started, Wait
// returns the error, not Start.
func (c *Client) Start(ctx context.Context, delay time.Duration) error {
	a, err := c.sendAndAwait(ctx, Message{Type: TypeStart, Trial: c.trialNumber(), Start: &Start{delay}}, func(a answers) bool { return a.started || a.done != nil }, TypeStarted)
	if a.started {
		return nil
	}
	return err
}

// RoundTrip returns the shortest time that an answer of the agent took; 0 before the first Prepare.
func (c *Client) RoundTrip() time.Duration { return c.roundTrip }

// sendAndAwait sends m and waits until have returns true for the answers. It keeps the shortest round trip for
// RoundTrip. want names the missing message in errors.
func (c *Client) sendAndAwait(ctx context.Context, m Message, have func(answers) bool, want messageType) (answers, error) {
	begin := time.Now()
	if err := c.send(ctx, m); err != nil {
		return answers{}, err
	}
	a, err := c.awaitAnswer(ctx, want, have)
	if took := time.Since(begin); err == nil && (c.roundTrip == 0 || took < c.roundTrip) {
		c.roundTrip = took
	}
	return a, err
}

// Wait waits for the end of the trial and returns the agent's observation.
func (c *Client) Wait(ctx context.Context) (*sample.Observation, error) {
	a, err := c.awaitAnswer(ctx, TypeDone, func(a answers) bool { return a.done != nil })
	if err != nil {
		return nil, err
	}
	return a.done, nil
}

// Finish tells a server that its client has ended: the server of a tool serves until then. Wait returns the server's
// observation.
func (c *Client) Finish(ctx context.Context) error {
	return c.send(ctx, Message{Type: TypeFinish, Trial: c.trialNumber()})
}

// Leave tells a server of http that it was taken out of its Service: it serves for the time drain, and ends. It returns
// when the server has confirmed. A later failure fails the trial: see Wait.
func (c *Client) Leave(ctx context.Context, drain time.Duration) error {
	return c.requestRoll(ctx, Message{Type: TypeLeave, Leave: &leave{Drain: drain}})
}

// Return tells a server that has left to listen again, and returns when it listens. A later failure fails the trial:
// see Wait.
func (c *Client) Return(ctx context.Context) error {
	return c.requestRoll(ctx, Message{Type: TypeReturn})
}

func (c *Client) requestRoll(ctx context.Context, m Message) error {
	c.mu.Lock()
	m.Trial = c.state.trial
	before := c.state.rolled
	c.mu.Unlock()
	if err := c.send(ctx, m); err != nil {
		return err
	}
	_, err := c.awaitAnswer(ctx, TypeRolled, func(a answers) bool { return a.rolled > before })
	return err
}

// Cancel gives up the current trial, if any; a pending Wait returns KindCancelled at once. The agent's later answer is
// dropped. After Wait, Cancel makes the agent close its sockets, which it otherwise keeps until the next Prepare:
// cancel both sides when both are done.
func (c *Client) Cancel() error {
	var trial uint64
	c.updateState(func(a *answers) {
		if a.abandoned || a.trial == 0 || a.gone != nil {
			return
		}
		trial, a.abandoned = a.trial, true
		a.failed = cmp.Or(a.failed, &Error{Kind: KindCancelled, Message: "the trial was given up"})
	})
	if trial == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), c.HeartbeatLimit)
	defer stop()
	return c.send(ctx, Message{Type: TypeCancel, Trial: trial})
}

// Close ends the agent. It may be called twice.
func (c *Client) Close() error {
	c.once.Do(func() { close(c.left) })
	c.endConversation(&Error{Kind: KindGone, Message: "the controller closed the stream"})
	if err := c.stream.Close(); err != nil {
		return fmt.Errorf("close agent at %s: %w", c.name, err)
	}
	return nil
}

// sendHeartbeats sends the controller's heartbeats to the agent until Close, one every beat. It ends if the stream is
// broken, which the reader reports.
func (c *Client) sendHeartbeats(beat time.Duration) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.enc.Encode(Message{Type: TypeHeartbeat}) != nil {
				return
			}
		case <-c.left:
			return
		}
	}
}

func (c *Client) trialNumber() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.trial
}

// send writes m. It gives up when ctx ends or after the heartbeat limit: the pipe to an agent that hangs fills up.
func (c *Client) send(ctx context.Context, m Message) error {
	sent := make(chan error, 1)
	go func() { sent <- c.enc.Encode(m) }()
	timer := time.NewTimer(c.HeartbeatLimit)
	defer timer.Stop()
	select {
	case err := <-sent:
		if err == nil {
			return nil
		}
		return c.wrapError(c.endConversation(&Error{Kind: KindGone, Message: c.appendLastWords(err.Error())}))
	case <-timer.C:
		return c.wrapError(c.endConversation(&Error{Kind: KindLost, Message: fmt.Sprintf("it took no %s for %s", m.Type, c.HeartbeatLimit)}))
	case <-ctx.Done():
		return c.wrapError(ctx.Err())
	}
}

// awaitAnswer waits until have is true of the answers, and returns them. It fails if the trial fails, the agent is gone or
// silent, or ctx ends. want names the missing message in errors.
func (c *Client) awaitAnswer(ctx context.Context, want messageType, have func(answers) bool) (answers, error) {
	limit := c.HeartbeatLimit
	if want == TypeHello {
		limit = helloLimit
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		c.mu.Lock()
		a, changed := c.state, c.changed
		c.mu.Unlock()
		switch {
		case a.failed != nil:
			return a, c.wrapError(a.failed)
		case have(a):
			return a, nil
		case a.gone != nil:
			return a, c.wrapError(a.gone)
		}
		left := limit - time.Since(a.heard)
		if left <= 0 {
			return a, c.wrapError(c.endConversation(&Error{Kind: KindLost, Message: c.appendLastWords(fmt.Sprintf("nothing heard for %s, and a heartbeat is due each second", limit))}))
		}
		timer.Reset(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return a, c.wrapError(&LateError{want, a.stands, ctx.Err()})
		}
	}
}

// LateError is the error of a wait whose context ended before the message came. Want is the missing message. Stands is
// the state of the trial in the last heartbeat.
type LateError struct {
	Want   messageType
	Stands string
	Err    error
}

func (e *LateError) Error() string {
	if e.Stands == "" {
		return fmt.Sprintf("no %q from it yet: %s", e.Want, e.Err)
	}
	return fmt.Sprintf("no %q from it yet, at last it was %s: %s", e.Want, e.Stands, e.Err)
}
func (e *LateError) Unwrap() error { return e.Err }

// readMessages handles the messages of the agent until the stream ends.
func (c *Client) readMessages() {
	d := NewDecoder(c.stream)
	for {
		m, err := d.Decode()
		var bad *lineError
		switch {
		case errors.As(err, &bad):
			c.endConversation(&Error{Kind: KindProtocol, Message: c.appendLastWords(err.Error())})
			return
		case err != nil:
			cause := "the stream ended"
			if !errors.Is(err, io.EOF) {
				cause = err.Error()
			}
			c.endConversation(&Error{Kind: KindGone, Message: c.appendLastWords(cause)})
			return
		}
		c.takeMessage(m)
	}
}

// takeMessage handles one message. An answer to an earlier trial only shows that the agent lives.
func (c *Client) takeMessage(m Message) {
	c.updateState(func(a *answers) {
		a.heard = time.Now()
		if m.Type == TypeHello && a.hello == nil {
			a.hello = m.Hello
		}
		if m.Trial != a.trial || a.abandoned {
			return
		}
		switch m.Type {
		case TypeHeartbeat:
			a.stands = m.Stands
		case TypeReady:
			a.ready = m.Ready
		case TypeStarted:
			a.started = true
		case TypeRolled:
			a.rolled++
		case TypeDone:
			a.done = m.Done
		case TypeError:
			a.failed = m.Error
		}
	})
}

// endConversation records why the conversation is over, unless it is over already. It returns the first reason.
func (c *Client) endConversation(why *Error) (first *Error) {
	c.updateState(func(a *answers) {
		a.gone = cmp.Or(a.gone, why)
		first = a.gone
	})
	return first
}

// updateState changes the state, and wakes the goroutines that wait for a change.
func (c *Client) updateState(change func(*answers)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
	close(c.changed)
	c.changed = make(chan struct{})
}

// appendLastWords adds what the agent wrote to its standard error before it ended, if the stream kept it.
func (c *Client) appendLastWords(cause string) string {
	if s, ok := c.stream.(interface{ LastWords() string }); ok {
		if words := strings.TrimSpace(s.LastWords()); words != "" {
			return cause + "; its last words: " + words
		}
	}
	return cause
}

func (c *Client) wrapError(err error) error { return fmt.Errorf("agent at %s: %w", c.name, err) }
