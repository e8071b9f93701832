package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// request is what the client asks for; it is one message.
type request struct {
	ID      uint64
	Network string
	Address string
	// Timeout bounds the dialling.
	Timeout time.Duration
}

// reply answers a request: the socket is ancillary data, or Error says what failed.
type reply struct {
	ID    uint64
	Error string
}

// maxMessage is more than a request or a reply takes, in bytes.
const maxMessage = 4096

// Pair makes the two ends of a connection. far is for the other process; the caller closes it when that is started.
func Pair() (near, far *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "handover"), os.NewFile(uintptr(fds[1]), "handover"), nil
}

// unixConn turns an end into a connection; f is closed either way.
func unixConn(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("handover: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("handover: %T is not a unix socket", c), c.Close())
	}
	return u, nil
}

// Serve connects what the other end asks for, several at the same time, until that end is closed. f is closed.
func Serve(f *os.File) error {
	conn, err := unixConn(f)
	if err != nil {
		return err
	}
	var busy sync.WaitGroup
	defer busy.Wait()
	defer conn.Close()
	buf := make([]byte, maxMessage)
	for {
		n, err := conn.Read(buf)
		if errors.Is(err, io.EOF) || n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("handover: %w", err)
		}
		var r request
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			return fmt.Errorf("handover: decode request: %w", err)
		}
		busy.Go(func() { r.serve(conn) })
	}
}

// serve answers one request. It ignores a failed answer: the other end is closed.
func (r request) serve(to *net.UnixConn) {
	socket, err := r.dial()
	answer := reply{ID: r.ID}
	var fds []int
	if err != nil {
		answer.Error = err.Error()
	} else {
		defer socket.Close()
		fds = []int{int(socket.Fd())}
	}
	if b, err := json.Marshal(answer); err == nil {
		_ = Send(to, b, fds...)
	}
}

// dial returns the connected socket.
func (r request) dial() (*os.File, error) {
	c, err := (&net.Dialer{Timeout: r.Timeout}).Dial(r.Network, r.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, ok := c.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("%s has no descriptor", r.Network)
	}
	return f.File()
}

// Client asks for sockets. Its methods may be called at the same time.
type Client struct {
	conn *net.UnixConn

	mu sync.Mutex
	// next is the last ID given out; waiting has the answer channel of each open request.
	next    uint64
	waiting map[uint64]chan answered
	// ended is why the client has ended, nil while it runs.
	ended error
}

type answered struct {
	conn net.Conn
	err  error
}

// NewClient returns the client at this end of a pair. f is closed.
func NewClient(f *os.File) (*Client, error) {
	conn, err := unixConn(f)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, waiting: map[uint64]chan answered{}}
	go c.receive()
	return c, nil
}

// Dial connects like net.Dialer. ctx bounds it; one without a deadline gives up after ten seconds.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	r := request{Network: network, Address: address, Timeout: 10 * time.Second}
	if d, ok := ctx.Deadline(); ok {
		r.Timeout = time.Until(d)
	}
	answer, err := c.ask(&r)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		return a.conn, a.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	delete(c.waiting, r.ID)
	c.mu.Unlock()
	select {
	case a := <-answer: // it came in the meantime
		return a.conn, a.err
	default:
		return nil, fmt.Errorf("dial %s %s: %w", network, address, context.Cause(ctx))
	}
}

// ask sends the request and returns where the answer will be.
func (c *Client) ask(r *request) (chan answered, error) {
	answer := make(chan answered, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	c.next++
	r.ID = c.next
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(b); err != nil {
		return nil, fmt.Errorf("handover: %w", err)
	}
	c.waiting[r.ID] = answer
	return answer, nil
}

// receive passes each answer to the caller that waits for it.
func (c *Client) receive() {
	buf := make([]byte, maxMessage)
	for {
		n, socket, err := Receive(c.conn, buf, "socket")
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			c.fail(fmt.Errorf("the process that connects sockets has ended: %w", err))
			return
		}
		var r reply
		a := answered{}
		if a.err = json.Unmarshal(buf[:n], &r); a.err == nil {
			a.conn, a.err = r.take(socket)
		}
		c.mu.Lock()
		to := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		if to != nil {
			to <- a
		}
		c.mu.Unlock()
		if to == nil && a.conn != nil {
			_ = a.conn.Close() // the caller has given up
		}
	}
}

// take makes a connection of the socket that came with the reply; it closes the socket's file.
func (r reply) take(socket *os.File) (net.Conn, error) {
	switch {
	case socket == nil && r.Error == "":
		return nil, errors.New("handover: the reply has no socket")
	case socket == nil:
		return nil, errors.New(r.Error)
	}
	conn, err := net.FileConn(socket)
	return conn, errors.Join(err, socket.Close())
}

// fail ends all waiting and later calls with err.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for id, to := range c.waiting {
		to <- answered{err: err}
		delete(c.waiting, id)
	}
}

// Close ends the connection, and with it the other end's Serve. Sockets that were handed over stay.
func (c *Client) Close() error { return c.conn.Close() }
