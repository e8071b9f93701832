package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

const (
	// helloLimit bounds the wait for the first output of an agent.
	helloLimit = 15 * time.Second
	// farewell is how long an agent may take to end after its input was closed.
	farewell = time.Second
	// lookLimit bounds the requests that find out why an agent has ended.
	lookLimit = 2500 * time.Millisecond
	// tailSize is how many bytes at the end of a program's stderr are kept.
	tailSize = 4 << 10
	// outputLimit bounds the output of Exec in bytes.
	outputLimit = 16 << 20
)

// runInPod runs a command in a pod of the run and returns when the command has ended.
func (c *Cluster) runInPod(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
	at := detect.ContainerRef{Namespace: c.namespace(isHostPod(pod)), Pod: pod, Container: containerName}
	return detect.Way{Kube: c.client, Config: c.config}.Stream(ctx, at, argv, o)
}

// Exec runs argv in a pod of the run and returns its standard output, even if the command failed. If the command does not
// end, it returns nil. The error contains the end of the command's stderr. Exec also fails if the output exceeds
// outputLimit.
func (c *Cluster) Exec(ctx context.Context, pod string, argv []string) ([]byte, error) {
	var out bounded
	var tail tail
	err := c.exec(ctx, pod, argv, remotecommand.StreamOptions{Stdout: &out, Stderr: &tail})
	if err == nil && out.over {
		err = fmt.Errorf("more than %d bytes of output", outputLimit)
	}
	if err == nil {
		return out.Bytes(), nil
	}
	if words := tail.String(); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	if errors.Is(err, detect.ErrAbandoned) {
		return nil, fmt.Errorf("%s in pod %s: %w", strings.Join(argv, " "), pod, err)
	}
	return out.Bytes(), fmt.Errorf("%s in pod %s: %w", strings.Join(argv, " "), pod, withAdvice(withCause(ctx, err)))
}

// startAgent starts an agent in a pod by exec, or through a port-forward if exec is refused. Once a port-forward has
// worked, all later agents are started that way.
func (c *Cluster) startAgent(ctx context.Context, pod string) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	closed, forward := c.closed, c.forward
	c.mu.Unlock()
	if closed {
		return nil, errGone
	}
	if forward {
		return c.startForwardedAgent(ctx, pod)
	}
	s, err := c.openStream(ctx, pod)
	if err == nil {
		return s, nil
	}
	if !isExecRefused(err) {
		return nil, fmt.Errorf("exec in pod %s: %w", pod, withAdvice(err))
	}
	other, otherErr := c.startForwardedAgent(ctx, pod)
	if otherErr != nil {
		return nil, fmt.Errorf("exec in pod %s: %w; port-forward instead: %w", pod, withAdvice(err), otherErr)
	}
	c.mu.Lock()
	c.forward, c.refused = true, err.Error()
	c.mu.Unlock()
	c.options.Say("exec is refused (%v): agents are reached by port-forward", err)
	return other, nil
}

// isExecRefused reports whether err, an error of exec, means that the cluster forbids exec.
func isExecRefused(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch status.Status().Code {
		case 400, 403, 405, 422:
			return true
		}
	}
	text := err.Error()
	return strings.Contains(text, "orbidden") || strings.Contains(text, "denied the request")
}

// stream is the connection to an agent in a pod: its standard input and output.
type stream struct {
	cluster *Cluster
	pod     string
	in      *io.PipeWriter
	out     *io.PipeReader
	tail    tail
	stop    context.CancelFunc
	once    sync.Once
	// heard is closed at the agent's first output, done when the agent has ended.
	heard, done chan struct{}
	// err is why the agent ended. It may be read once done is closed.
	err error
	// left means that this controller called Close.
	left atomic.Bool
}

// openStream starts an agent by exec and waits for its first output, at most helloLimit. It fails if exec is refused, or if
// the agent ends or stays silent.
func (c *Cluster) openStream(ctx context.Context, pod string) (*stream, error) {
	inside, in := io.Pipe()
	out, outside := io.Pipe()
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &stream{cluster: c, pod: pod, in: in, out: out, stop: stop, heard: make(chan struct{}), done: make(chan struct{})}
	first := sync.OnceFunc(func() { close(s.heard) })
	go func() {
		defer stop()
		s.err = c.exec(life, pod, append([]string{program}, AgentArguments()...), remotecommand.StreamOptions{Stdin: inside, Stdout: announcing{outside, first}, Stderr: &s.tail})
		select {
		case <-s.heard:
			s.err = streamError(s.err)
		default: // it never worked, so this is not a broken connection
		}
		close(s.done)
		_ = outside.CloseWithError(s.err) // nil is the end of input
		_ = inside.CloseWithError(io.ErrClosedPipe)
	}()
	late := time.NewTimer(helloLimit)
	defer late.Stop()
	var err error
	select {
	case <-s.heard:
		return s, c.keepStream(s)
	case <-s.done:
		if err = s.err; err == nil {
			err = errors.New("it ended at once")
		}
		if words := s.tail.String(); words != "" {
			err = fmt.Errorf("%w: %s", err, words)
		}
		err = c.withPodFault(err, pod)
	case <-late.C:
		err = c.withPodFault(fmt.Errorf("no word from the agent for %s", helloLimit), pod)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = s.Close() // the agent is already known to have failed
	return nil, err
}

// streamError adds the text "the exec stream broke" to err. It returns err unchanged if err is nil or the command's exit code.
func streamError(err error) error {
	var exit exec.CodeExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return fmt.Errorf("the exec stream broke: %w", err)
}

// AgentArguments returns the arguments with which cnibench runs as an agent in a cluster.
func AgentArguments() []string { return []string{agentVerb, "--lifeline", lifeline.String()} }

// keepStream stores a stream, so that Cluster.Close can end it. If the cluster is closed already, it closes the stream and
// returns errGone.
func (c *Cluster) keepStream(s *stream) error {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.streams[s] = struct{}{}
	}
	c.mu.Unlock()
	if closed {
		return errors.Join(errGone, s.Close())
	}
	return nil
}

func (s *stream) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s *stream) Write(b []byte) (int, error) { return s.in.Write(b) }

// Close closes the agent's input, and its connection if the agent has not ended after farewell. Further calls do nothing.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.left.Store(true)
		_ = s.in.Close()  // never an error
		_ = s.out.Close() // the same
		late := time.NewTimer(farewell)
		defer late.Stop()
		select {
		case <-s.done:
		case <-late.C:
		}
		s.stop()
		<-s.done
		s.cluster.mu.Lock()
		delete(s.cluster.streams, s)
		s.cluster.mu.Unlock()
	})
	return nil
}

// LastWords returns the end of the agent's stderr, and the faults of its pod and node. After Close it returns only
// the stderr.
func (s *stream) LastWords() string {
	if s.left.Load() {
		return s.tail.String()
	}
	return strings.Trim(s.tail.String()+"; "+s.cluster.currentPodFault(s.pod), "; ")
}

// withPodFault adds the fault of a pod that currentPodFault finds to err. It returns err unchanged if there is no fault.
func (c *Cluster) withPodFault(err error, pod string) error {
	if seen := c.currentPodFault(pod); seen != "" {
		return fmt.Errorf("%w; %s", err, seen)
	}
	return err
}

// currentPodFault calls podFault with a new context, for at most lookLimit.
func (c *Cluster) currentPodFault(pod string) string {
	ctx, stop := context.WithTimeout(context.Background(), lookLimit)
	defer stop()
	return c.podFault(ctx, pod)
}

// announcing is a writer that calls first before each write.
type announcing struct {
	io.Writer
	first func()
}

func (a announcing) Write(b []byte) (int, error) {
	a.first()
	return a.Writer.Write(b)
}

// tail is a writer that keeps the last tailSize bytes. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// bounded is a writer that keeps the first outputLimit bytes. over is true if more bytes were written.
type bounded struct {
	bytes.Buffer
	over bool
}

func (o *bounded) Write(b []byte) (int, error) {
	if room := outputLimit - o.Len(); len(b) > room {
		o.over = true
		_, _ = o.Buffer.Write(b[:room]) // never an error
		return len(b), nil
	}
	return o.Buffer.Write(b)
}
