package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/env/image/containerd"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Kinds of a Target.
const (
	Kind   = "kind"
	Ctr    = "ctr"
	Docker = "docker"
	Socket = "containerd-socket"
)

// Kubelet is the namespace of containerd in which the kubelet looks for images.
const Kubelet = "k8s.io"

// sockets are where containerd listens: by itself, and as K3s and RKE2 start it.
var sockets = []string{"/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock"}

// Target is where an image is loaded on this machine.
type Target struct {
	// Kind is one of the constants.
	Kind string
	// Name is the cluster of kind, the namespace of ctr, or the path of the socket.
	Name string
}

// Targets are the forms of a target, for people.
func Targets() []string {
	return []string{Kind + "[:CLUSTER]", Ctr + "[:NAMESPACE]", Docker, Socket + "[=PATH]"}
}

// ParseTarget reads one of the forms of Targets.
func ParseTarget(s string) (Target, error) {
	t := Target{Kind: s}
	if k := strings.IndexAny(s, ":="); k >= 0 {
		t.Kind, t.Name = s[:k], s[k+1:]
		wanted := byte(':')
		if t.Kind == Socket {
			wanted = '='
		}
		if t.Name == "" || s[k] != wanted || t.Kind == Docker {
			return Target{}, badTarget(s)
		}
	}
	switch {
	case !slices.Contains([]string{Kind, Ctr, Docker, Socket}, t.Kind):
		return Target{}, badTarget(s)
	case t.Name != "":
	case t.Kind == Kind:
		t.Name = "kind"
	case t.Kind == Ctr:
		t.Name = Kubelet
	}
	return t, nil
}

func badTarget(s string) error {
	return advice.With(fmt.Errorf("nothing is loaded into %q", s), "write one of "+strings.Join(Targets(), ", "))
}

// Digested are the names under which containerd gets the image: by its tag, and by its digest alone, which is how the
// kubelet asks for a reference that has both.
func (i *Image) Digested() (tagged, digested string) {
	return i.name.String(), i.name.repository + "@" + i.Digest()
}

// LoadCtr imports the image by the program ctr, which must be that of the containerd meant.
func (i *Image) LoadCtr(ctx context.Context, namespace string) error {
	tagged, digested := i.Digested()
	if err := feed(ctx, i.WriteOCI, "ctr", "-n", namespace, "images", "import", "-"); err != nil {
		return err
	}
	return feed(ctx, nil, "ctr", "-n", namespace, "images", "tag", "--force", tagged, digested)
}

// LoadDocker gives the image to the daemon of Docker, or the one of several that is for its platform.
func (i *Image) LoadDocker(ctx context.Context) error {
	if i.index == nil {
		return feed(ctx, i.WriteDocker, "docker", "load")
	}
	out, err := output(ctx, "docker", "version", "--format", "{{.Server.Os}}/{{.Server.Arch}}")
	if err != nil {
		return err
	}
	only, err := i.Only(strings.TrimSpace(out))
	if err != nil {
		return advice.With(fmt.Errorf("docker load: %w", err), "add the --platform that is missing")
	}
	return feed(ctx, only.WriteDocker, "docker", "load")
}

// LoadSocket gives the image to containerd at a socket, or at the usual ones if path is "". It returns the one used.
func (i *Image) LoadSocket(ctx context.Context, path string) (socket string, err error) {
	socket = path
	if socket == "" {
		socket = sockets[0]
		if k := slices.IndexFunc(sockets, isThere); k >= 0 {
			socket = sockets[k]
		}
	}
	c, err := containerd.Dial(ctx, socket, Kubelet)
	if err != nil {
		return socket, explainSocket(err, socket)
	}
	defer c.Close()
	blobs, err := i.blobs()
	if err != nil {
		return socket, err
	}
	list := make([]containerd.Blob, len(blobs))
	for k, b := range blobs {
		list[k] = containerd.Blob{
			Descriptor: containerd.Descriptor{MediaType: string(b.mediaType), Digest: b.hash.String(), Size: b.size}, Open: b.open,
		}
		for _, ref := range b.refs {
			list[k].Refs = append(list[k].Refs, ref.String())
		}
	}
	tagged, digested := i.Digested()
	if err := c.Import(ctx, list, tagged, digested); ctx.Err() != nil {
		return socket, context.Cause(ctx)
	} else if err != nil {
		return socket, fmt.Errorf("load into %s: %w", socket, err)
	}
	return socket, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func explainSocket(err error, socket string) error {
	wrapped := fmt.Errorf("containerd's socket %s: %w", socket, err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return advice.With(wrapped, "run it as root")
	case errors.Is(err, fs.ErrNotExist):
		return advice.With(wrapped, "run it on a node, and name the socket of its containerd: --load "+Socket+"=PATH")
	}
	return advice.With(wrapped, "see whether containerd runs on this machine")
}

// lastWords is how long a program's children may hold its output open once it has been ended.
const lastWords = time.Second

// feed runs a program with what write writes on its stdin. Its output is in the error.
func feed(ctx context.Context, write func(io.Writer) error, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, lastWords
	written := make(chan error, 1)
	var r *io.PipeReader
	if write != nil {
		var w *io.PipeWriter
		r, w = io.Pipe()
		cmd.Stdin = r
		go func() {
			err := write(w)
			w.CloseWithError(err)
			written <- err
		}()
	} else {
		written <- nil
	}
	err := cmd.Run()
	if r != nil {
		r.CloseWithError(io.ErrClosedPipe) // a program that ended early leaves a writer behind
	}
	writeErr := <-written
	if err != nil {
		return explainProgram(ctx, err, argv, said.String())
	}
	if errors.Is(writeErr, io.ErrClosedPipe) {
		return fmt.Errorf("%s took only a part of the image", argv[0])
	}
	return writeErr
}

// output runs a program for what it prints.
func output(ctx context.Context, argv ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, lastWords
	if err := cmd.Run(); err != nil {
		return "", explainProgram(ctx, err, argv, stderr.String())
	}
	return stdout.String(), nil
}

func explainProgram(ctx context.Context, err error, argv []string, said string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return advice.With(err, "without it, write an archive by -o and import it on each node, or use --load "+Socket)
	}
	said = number.Clean(strings.Join(strings.Fields(said), " "))
	return advice.With(fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, said),
		"see whether its daemon runs, and whether you may use it")
}
