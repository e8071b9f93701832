package containerd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Status is an answer of containerd that is not yes.
type Status struct {
	// Code is that of gRPC.
	Code    int
	Message string
}

func (s *Status) Error() string {
	if s.Message == "" {
		return "containerd: gRPC status " + strconv.Itoa(s.Code)
	}
	return "containerd: " + s.Message
}

// alreadyExists is the code for what is there.
const alreadyExists = 6

// call sends one message and wants to hear that all is well.
func (c *Client) call(ctx context.Context, method string, m message) error {
	return c.stream(ctx, method, func(send func(message) error) error { return send(m) })
}

// stream sends what produce sends, and wants to hear that all is well.
func (c *Client) stream(ctx context.Context, method string, produce func(send func(message) error) error) error {
	r, w := io.Pipe()
	produced := make(chan error, 1)
	go func() {
		err := produce(func(m message) error {
			_, err := w.Write(frame(m))
			return err
		})
		w.CloseWithError(err)
		produced <- err
	}()
	err := c.exchange(ctx, method, r)
	// Who still writes is told that nobody reads.
	r.CloseWithError(errUnread)
	if own := <-produced; own != nil && !errors.Is(own, errUnread) && !errors.Is(own, io.ErrClosedPipe) {
		return own
	}
	return err
}

var errUnread = errors.New("containerd did not wait for the rest")

// frame puts the head of a gRPC message before it: not compressed, and how long it is.
func frame(m message) []byte {
	b := make([]byte, 5, 5+len(m))
	binary.BigEndian.PutUint32(b[1:], uint32(len(m)))
	return append(b, m...)
}

func (c *Client) exchange(ctx context.Context, method string, body io.Reader) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://containerd/containerd.services."+method, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	request.Header.Set("Containerd-Namespace", c.namespace)
	if c.lease != "" {
		request.Header.Set("Containerd-Lease", c.lease)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	err = errors.Join(err, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("containerd: HTTP %s", answer.Status)
	}
	// An answer without a message has its status among the headers.
	for _, h := range []http.Header{answer.Trailer, answer.Header} {
		if code := h.Get("Grpc-Status"); code != "" {
			return status(code, h.Get("Grpc-Message"))
		}
	}
	if err != nil {
		return err
	}
	return errors.New("containerd: an answer without a status")
}

// status reads the end of an answer.
func status(code, text string) error {
	n, err := strconv.Atoi(code)
	if err != nil {
		return fmt.Errorf("containerd: gRPC status %q", code)
	}
	if n == 0 {
		return nil
	}
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &Status{Code: n, Message: text}
}
