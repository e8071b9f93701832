package detect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// ClientsOf returns clients for the cluster of config. It contacts no server.
func ClientsOf(config *rest.Config) (Clients, error) {
	kube, err := api.New(config)
	if err != nil {
		return Clients{}, err
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	way := Way{kube, config}
	return Clients{Kube: kube, Dynamic: custom, Exec: way.run, Stream: way.Stream}, nil
}

// run runs argv in a container and returns its stdout, even if the program failed. The error contains the command, the pod,
// and the last line of stderr. If the error is ErrAbandoned, the stdout is nil.
func (w Way) run(ctx context.Context, c ContainerRef, argv []string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	err := w.Stream(ctx, c, argv, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err == nil {
		return stdout.Bytes(), nil
	}
	what := fmt.Sprintf("%s in %s/%s", strings.Join(argv, " "), c.Namespace, c.Pod)
	if errors.Is(err, ErrAbandoned) {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	words := strings.TrimSpace(stderr.String())
	if words != "" {
		return stdout.Bytes(), fmt.Errorf("%s: %w: %s", what, err, words[strings.LastIndexByte(words, '\n')+1:])
	}
	if code, ok := err.(exec.CodeExitError); ok {
		return stdout.Bytes(), fmt.Errorf("%s: exit code %d", what, code.Code)
	}
	return stdout.Bytes(), fmt.Errorf("%s: %w", what, err)
}

// ErrAbandoned means that a command did not end although its context has ended. The command may still read and write its
// streams.
var ErrAbandoned = errors.New("the kubelet does not answer")

// farewell is how long Stream waits for a command after its context has ended.
const farewell = time.Second

// Way runs programs in the containers of a cluster.
type Way struct {
	Kube   *api.Client
	Config *rest.Config
}

// Stream runs argv in a container until it ends, over WebSocket, or over SPDY if a proxy refuses WebSocket. If ctx ends and
// the command does not, it returns ErrAbandoned.
func (w Way) Stream(ctx context.Context, c ContainerRef, argv []string, o remotecommand.StreamOptions) error {
	url := w.Kube.REST.Post().Namespace(c.Namespace).Resource("pods").Name(c.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: c.Container, Command: argv, Stdin: o.Stdin != nil, Stdout: true, Stderr: true}, api.Parameters()).URL()
	socket, err := remotecommand.NewWebSocketExecutor(w.Config, "GET", url.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(w.Config, "POST", url)
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- both.StreamWithContext(ctx, o) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// StreamWithContext ignores ctx while it waits for a kubelet that does not answer.
	late := time.NewTimer(farewell)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return fmt.Errorf("%w: %w", ErrAbandoned, context.Cause(ctx))
	}
}
