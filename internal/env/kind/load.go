package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// LoadImage imports the image on every node of a cluster and returns their names. It needs the container engine that
// made the cluster.
func LoadImage(ctx context.Context, name string, i *image.Image) ([]string, error) {
	list, err := internalNodes(name)
	if err != nil {
		return nil, err
	}
	var loaded []string
	for _, n := range list {
		if err := importImage(ctx, n, i); err != nil {
			if ctx.Err() != nil {
				return loaded, context.Cause(ctx)
			}
			return loaded, fmt.Errorf("kind node %s: %w", n, err)
		}
		loaded = append(loaded, n.String())
	}
	return loaded, nil
}

// internalNodes returns the nodes of a cluster that run a kubelet. It fails if there is no such cluster.
func internalNodes(name string) ([]nodes.Node, error) {
	provider, err := detectProvider()
	if err != nil {
		return nil, advice.With(err, "install the engine that made the cluster: Docker, Podman or nerdctl")
	}
	list, err := provider.ListInternalNodes(name)
	if err != nil {
		return nil, advice.With(fmt.Errorf("kind cluster %s: %w", name, err), "see whether the container runtime answers: docker ps")
	}
	if len(list) > 0 {
		return list, nil
	}
	others, err := provider.List()
	if err != nil || len(others) == 0 {
		return nil, advice.With(fmt.Errorf("no kind cluster %s, nor any other", name), "kind create cluster --name "+name)
	}
	return nil, advice.With(fmt.Errorf("no kind cluster %s", name), "there is "+strings.Join(others, ", ")+": --load "+image.Kind+":"+others[0])
}

// importImage imports the image in one node, by its tag and by its digest.
func importImage(ctx context.Context, n nodes.Node, i *image.Image) error {
	tagged, digested := i.Digested()
	err := image.Pipe(i.WriteOCI, func(r io.Reader) error { return runCtr(ctx, n, r, "images", "import", "-") })
	if err != nil && !errors.Is(err, io.ErrClosedPipe) { // ctr may leave padding at the end unread
		return err
	}
	return runCtr(ctx, n, nil, "images", "tag", "--force", tagged, digested)
}

// runCtr runs ctr with args in a node. The error contains ctr's output.
func runCtr(ctx context.Context, n nodes.Node, stdin io.Reader, args ...string) error {
	var said bytes.Buffer
	cmd := n.CommandContext(ctx, "ctr", append([]string{"--namespace", image.Kubelet}, args...)...).SetStdout(&said).SetStderr(&said)
	if stdin != nil {
		cmd = cmd.SetStdin(stdin)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, number.Clean(strings.TrimSpace(said.String())))
	}
	return nil
}
