// Package containerd puts an image into containerd through its socket.
//
// It speaks the dozen messages of containerd's API that this takes, over gRPC as the standard library can carry it:
// HTTP/2 without TLS on a Unix socket. The client library would do the same with some two hundred packages more, which
// every start of every agent would pay for.
//
//	Dial ──► lease ──► Write each blob, those that are named first ──► Image ──► the lease goes
//
// A lease keeps the garbage collector away until the image names its blobs; labels on a blob say what it names.
package containerd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Descriptor names a blob.
type Descriptor struct {
	MediaType, Digest string
	Size              int64
}

// Blob is what Write stores.
type Blob struct {
	Descriptor
	// Refs are the digests of the blobs that this one names.
	Refs []string
	Open func() (io.ReadCloser, error)
}

// Client is a connection to containerd in one of its namespaces.
type Client struct {
	http      *http.Client
	transport *http.Transport
	namespace string
	lease     string
}

// Dial connects to the socket. It says at once if nobody is there.
func Dial(ctx context.Context, socket, namespace string) (*Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	probe, err := dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: dial, Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &Client{http: &http.Client{Transport: t}, transport: t, namespace: namespace}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// leaseTime is after how long a lease ends that nobody took back: this process was killed.
const leaseTime = time.Hour

// Import stores the blobs, which must come after those that they name, and gives the last of them the names.
func (c *Client) Import(ctx context.Context, blobs []Blob, names ...string) (err error) {
	if len(blobs) == 0 {
		return errors.New("an image of no blobs")
	}
	release, err := c.hold(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, b := range blobs {
		if err := c.write(ctx, b); err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
	for _, name := range names {
		if err := c.image(ctx, name, blobs[len(blobs)-1].Descriptor); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// hold takes a lease under which everything stays that is written; release gives it back, also when ctx is over.
func (c *Client) hold(ctx context.Context) (release func() error, err error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	id := "cnibench-image-" + hex.EncodeToString(random[:])
	expires := map[string]string{"containerd.io/gc.expire": time.Now().Add(leaseTime).UTC().Format(time.RFC3339)}
	var create message
	create.text(1, id)
	create.labels(3, expires)
	if err := c.call(ctx, "leases.v1.Leases/Create", create); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	c.lease = id
	return func() error {
		c.lease = ""
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		var remove message
		remove.text(1, id)
		return c.call(ctx, "leases.v1.Leases/Delete", remove)
	}, nil
}

// image makes name mean target, whatever it meant before.
func (c *Client) image(ctx context.Context, name string, target Descriptor) error {
	var d, image message
	d.text(1, target.MediaType)
	d.text(2, target.Digest)
	d.number(3, target.Size)
	image.text(1, name)
	image.nested(3, d)
	var create message
	create.nested(1, image)
	err := c.call(ctx, "images.v1.Images/Create", create)
	var s *Status
	if !errors.As(err, &s) || s.Code != alreadyExists {
		return err
	}
	var update, mask message
	mask.text(1, "target")
	update.nested(1, image)
	update.nested(2, mask)
	return c.call(ctx, "images.v1.Images/Update", update)
}

// Actions of a message that writes content, and its fields.
const (
	actionWrite  = 1
	actionCommit = 2
)

// chunk is how much of a blob goes into one message; containerd takes up to 16 MiB.
const chunk = 1 << 20

// write stores one blob. One that is there already gets its labels.
func (c *Client) write(ctx context.Context, b Blob) error {
	err := c.stream(ctx, "content.v1.Content/Write", func(send func(message) error) error { return b.send(send) })
	var s *Status
	if !errors.As(err, &s) || s.Code != alreadyExists {
		return err
	}
	if len(b.Refs) == 0 {
		return nil
	}
	var info, mask, update message
	info.text(1, b.Digest)
	info.labels(5, b.refLabels())
	for key := range b.refLabels() {
		mask.text(1, "labels."+key)
	}
	update.nested(1, info)
	update.nested(2, mask)
	return c.call(ctx, "content.v1.Content/Update", update)
}

// send turns a blob into messages: its bytes in chunks, then the commit. containerd compares size and digest.
func (b Blob) send(send func(message) error) (err error) {
	r, err := b.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	buffer := make([]byte, chunk)
	var offset int64
	for {
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			m := b.part(actionWrite, offset)
			m.bytes(6, buffer[:n])
			if err := send(m); err != nil {
				return err
			}
			offset += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	commit := b.part(actionCommit, offset)
	commit.labels(7, b.refLabels())
	return send(commit)
}

// part is what every message of a write says.
func (b Blob) part(action, offset int64) message {
	var m message
	m.number(1, action)
	m.text(2, "cnibench-"+b.Digest)
	m.number(3, b.Size)
	m.text(4, b.Digest)
	m.number(5, offset)
	return m
}

// refLabels tell the garbage collector what a blob names.
func (b Blob) refLabels() map[string]string {
	labels := map[string]string{}
	for k, digest := range b.Refs {
		labels[fmt.Sprintf("containerd.io/gc.ref.content.%d", k)] = digest
	}
	return labels
}
