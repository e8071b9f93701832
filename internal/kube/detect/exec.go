package detect

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// ClientsOf makes the clients of a configuration.
func ClientsOf(config *rest.Config) (Clients, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	return Clients{Kube: kube, Dynamic: custom, Exec: execBy(kube, config)}, nil
}

// execBy runs programs over the exec stream: by websocket, by SPDY where something on the way does not let that through.
func execBy(kube kubernetes.Interface, config *rest.Config) func(context.Context, ContainerRef, []string) ([]byte, error) {
	return func(ctx context.Context, c ContainerRef, argv []string) ([]byte, error) {
		request := kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.Namespace).Name(c.Pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: c.Container, Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec)
		socket, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
		if err != nil {
			return nil, err
		}
		spdy, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
		if err != nil {
			return nil, err
		}
		executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return nil, err
		}
		var stdout, stderr bytes.Buffer
		err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
		if err != nil {
			return stdout.Bytes(), explainExec(c, argv, err, stderr.String())
		}
		return stdout.Bytes(), nil
	}
}

// explainExec says what ran where, and its last words.
func explainExec(c ContainerRef, argv []string, err error, stderr string) error {
	what := fmt.Sprintf("%s in %s/%s", strings.Join(argv, " "), c.Namespace, c.Pod)
	if words := strings.TrimSpace(stderr); words != "" {
		if i := strings.LastIndexByte(words, '\n'); i >= 0 {
			words = words[i+1:]
		}
		return fmt.Errorf("%s: %w: %s", what, err, words)
	}
	if code, ok := err.(exec.CodeExitError); ok {
		return fmt.Errorf("%s: exit code %d", what, code.Code)
	}
	return fmt.Errorf("%s: %w", what, err)
}
