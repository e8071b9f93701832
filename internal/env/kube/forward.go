package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a connection to the main process of a pod, by a port-forward through the API server.
type tunnel struct {
	httpstream.Stream
	r       *bufio.Reader
	conn    httpstream.Connection
	cluster *Cluster
	pod     string
	once    sync.Once
	left    atomic.Bool
	// faults collects the errors that the kubelet reports for the port-forward.
	faults tail
}

// dialPod opens a port-forward to a port on the loopback of a pod, over WebSocket, or over SPDY if a proxy refuses WebSocket.
func (c *Cluster) dialPod(pod string, port int) (*tunnel, error) {
	url := c.client.REST.Post().Namespace(c.namespace(isHostPod(pod))).Resource("pods").Name(pod).SubResource("portforward").URL()
	first, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	second := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	both := portforward.NewFallbackDialerForStreaming(first, second, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	conn, _, err := both.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	t := &tunnel{conn: conn, cluster: c, pod: pod}
	if err := t.openStreams(port); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

// openStreams creates the two streams of a forwarded connection: one for its data, one for its errors.
func (t *tunnel) openStreams(port int) error {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "1")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := t.conn.CreateStream(headers)
	if err != nil {
		return err
	}
	if err := faults.Close(); err != nil { // nothing is written to it
		return err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	if t.Stream, err = t.conn.CreateStream(headers); err != nil {
		return err
	}
	t.r = bufio.NewReader(t.Stream)
	go func() { _, _ = io.Copy(&t.faults, faults) }() // the copy ends with the connection
	return nil
}

// startForwardedAgent starts an agent in a pod through a port-forward. It fails if the port-forward does not open within
// helloLimit.
func (c *Cluster) startForwardedAgent(ctx context.Context, pod string) (io.ReadWriteCloser, error) {
	type dialled struct {
		tunnel *tunnel
		err    error
	}
	result := make(chan dialled, 1)
	go func() {
		t, err := c.openTunnel(pod)
		result <- dialled{t, err}
	}()
	late := time.NewTimer(helloLimit)
	defer late.Stop()
	var why error
	select {
	case d := <-result:
		if d.err != nil {
			return nil, fmt.Errorf("port-forward to pod %s: %w", pod, withAdvice(d.err))
		}
		return d.tunnel, nil
	case <-late.C:
		why = fmt.Errorf("it did not open within %s", helloLimit)
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	// Close a connection that opens too late.
	go func() {
		if d := <-result; d.err == nil {
			_ = d.tunnel.Close()
		}
	}()
	return nil, fmt.Errorf("port-forward to pod %s: %w", pod, c.withPodFault(why, pod))
}

// openTunnel dials a pod's main process and authenticates with the run's token.
func (c *Cluster) openTunnel(pod string) (*tunnel, error) {
	t, err := c.dialPod(pod, c.forwardPort(isHostPod(pod)))
	if err != nil {
		return nil, err
	}
	if err = authenticate(t.Stream, t.r, c.token); err == nil {
		return t, nil
	}
	if faults := t.faults.String(); faults != "" {
		err = fmt.Errorf("%w: %s", err, faults)
	}
	return nil, errors.Join(err, t.Close())
}

func (t *tunnel) Read(b []byte) (int, error) { return t.r.Read(b) }

// Close ends the connection, and with it the agent. Further calls do nothing.
func (t *tunnel) Close() error {
	var err error
	t.once.Do(func() {
		t.left.Store(true)
		_ = t.Stream.Reset() // the connection ends with it
		err = t.conn.Close()
	})
	return err
}

// LastWords returns why the connection ended, and the faults of the pod and its node. After Close it returns "".
func (t *tunnel) LastWords() string {
	if t.left.Load() {
		return ""
	}
	return strings.Trim(t.faults.String()+"; "+t.cluster.currentPodFault(t.pod), "; ")
}
