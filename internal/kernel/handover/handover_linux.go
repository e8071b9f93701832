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

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// request asks for a connected socket, or with an empty Address for an unconnected one in an attached namespace. It
// is one message with an attached socket for the answer. The answer has the requested socket attached, or is the text
// of an error.
type request struct {
	Network, Address string
	// Timeout bounds the dialling.
	Timeout time.Duration
}

// maxMessage bounds a request and an answer, in bytes.
const maxMessage = 4096

// Pair makes the two ends of a connection. far is for the other process; the caller closes it after starting that
// process.
func Pair() (near, far *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "handover"), os.NewFile(uintptr(fds[1]), "handover"), nil
}

// newUnixConn returns the connection of f, one end of a pair. It always closes f. It fails if f is not a Unix socket.
func newUnixConn(f *os.File) (*net.UnixConn, error) {
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

// Serve connects or opens sockets for the Client at the other end, several at a time, until that end is closed. It
// closes f. It fails if a request is invalid.
func Serve(f *os.File) error {
	conn, err := newUnixConn(f)
	if err != nil {
		return err
	}
	var busy sync.WaitGroup
	defer busy.Wait()
	defer conn.Close()
	buf := make([]byte, maxMessage)
	for {
		n, files, err := receiveAll(conn, buf, "answer")
		if errors.Is(err, io.EOF) || n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		var r request
		if err == nil {
			err = json.Unmarshal(buf[:n], &r)
		}
		if err == nil && len(files) == 0 {
			err = errors.New("no socket for the answer")
		}
		if err != nil {
			closeAll(files)
			return fmt.Errorf("handover: request: %w", err)
		}
		busy.Go(func() { r.serve(files[0], files[1:]) })
	}
}

// serve answers one request through f, and closes f and the namespaces. It ignores a failure to send the answer: the
// client has given up.
func (r request) serve(f *os.File, namespaces []*os.File) {
	defer closeAll(namespaces)
	to, err := newUnixConn(f)
	if err != nil {
		return
	}
	defer to.Close()
	obtain := r.dial
	if r.Address == "" {
		obtain = func() (*os.File, error) {
			if len(namespaces) != 1 {
				return nil, errors.New("a socket without an address needs a namespace")
			}
			return Open(r.Network, netns.FromFile(namespaces[0]))
		}
	}
	socket, err := obtain()
	if err != nil {
		_ = Send(to, []byte(err.Error()))
		return
	}
	defer socket.Close()
	_ = Send(to, []byte("connected"), int(socket.Fd()))
}

// Open returns an unconnected TCP socket in the namespace ns. network is tcp4 or tcp6.
func Open(network string, ns *netns.NS) (*os.File, error) {
	family := syscall.AF_INET
	if network == "tcp6" {
		family = syscall.AF_INET6
	}
	var fd int
	err := ns.Do(func() error {
		var e syscall.Errno
		if fd, e = sock.Socket(family, sock.Stream, 0); e != 0 {
			return os.NewSyscallError("socket", e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

// dial connects to the address of the request, and returns a copy of the socket.
func (r request) dial() (*os.File, error) {
	c, err := (&net.Dialer{Timeout: r.Timeout, Control: sock.HearICMP}).Dial(r.Network, r.Address)
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

// Client requests sockets. It is safe for concurrent use.
type Client struct{ conn *net.UnixConn }

// NewClient returns the client at this end of a pair. It closes f.
func NewClient(f *os.File) (*Client, error) {
	conn, err := newUnixConn(f)
	return &Client{conn}, err
}

// Dial connects like net.Dialer. ctx bounds it; without a deadline it gives up after ten seconds.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	r := request{Network: network, Address: address, Timeout: 10 * time.Second}
	if d, ok := ctx.Deadline(); ok {
		r.Timeout = time.Until(d)
	}
	socket, err := c.requestSocket(ctx, r)
	if err != nil {
		return nil, err
	}
	conn, err := net.FileConn(socket)
	return conn, errors.Join(err, socket.Close())
}

// Open returns an unconnected TCP socket in the namespace ns, and in the cgroup of the process at the other end.
// network is tcp4 or tcp6.
func (c *Client) Open(ctx context.Context, network string, ns *netns.NS) (*os.File, error) {
	return c.requestSocket(ctx, request{Network: network}, ns.FD())
}

// requestSocket sends a request and returns the requested socket. It attaches the descriptors in beside to the request.
// It fails if ctx ends, or if the other process has ended or reports an error.
func (c *Client) requestSocket(ctx context.Context, r request, beside ...int) (*os.File, error) {
	answer, err := c.sendRequest(r, beside)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	defer context.AfterFunc(ctx, func() { _ = answer.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, maxMessage)
	n, socket, err := Receive(answer, buf, "socket")
	switch {
	case socket != nil:
		return socket, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("dial %s %s: %w", r.Network, r.Address, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("the process that connects sockets has ended: %w", err)
	}
	return nil, errors.New(string(buf[:n]))
}

// sendRequest sends a request and returns the socket on which the answer arrives. Only the other process has the far end of
// this socket, so a read of the answer fails when that process ends.
func (c *Client) sendRequest(r request, beside []int) (*net.UnixConn, error) {
	near, far, err := Pair()
	if err != nil {
		return nil, err
	}
	answer, err := newUnixConn(near)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	b, err := json.Marshal(r)
	if err == nil {
		err = Send(c.conn, b, append([]int{int(far.Fd())}, beside...)...)
	}
	if err = errors.Join(err, far.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("handover: %w", err), answer.Close())
	}
	return answer, nil
}

// Close ends the connection, and so the other end's Serve. Sockets that were handed over remain.
func (c *Client) Close() error { return c.conn.Close() }
