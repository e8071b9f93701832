package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Kinds of a Target.
const (
	Kind   = "kind"
	Ctr    = "ctr"
	Docker = "docker"
)

// Kubelet is the namespace of containerd in which the kubelet looks for images.
const Kubelet = "k8s.io"

// Sockets of containerd: its own, and the one of K3s and RKE2.
const (
	socket    = "/run/containerd/containerd.sock"
	socketK3s = "/run/k3s/containerd/containerd.sock"
)

// Target is where an image is loaded on this machine.
type Target struct {
	// Kind is Kind, Ctr or Docker.
	Kind string
	// Name is the name of the cluster for Kind, and the namespace of containerd for Ctr.
	Name string
}

// Targets returns the syntax of each kind of target, for help texts and errors.
func Targets() []string {
	return []string{Kind + "[:CLUSTER]", Ctr + "[:NAMESPACE]", Docker}
}

// ParseTarget parses a target such as kind:NAME. The default name is "kind" for a cluster of kind, and Kubelet for
// the namespace of ctr. It fails for an unknown kind, for an empty name after the colon, and for docker with a
// name.
func ParseTarget(s string) (Target, error) {
	t := Target{Kind: s}
	if kind, name, named := strings.Cut(s, ":"); named {
		if t = (Target{kind, name}); name == "" || kind == Docker {
			return Target{}, targetError(s)
		}
	}
	switch {
	case !slices.Contains([]string{Kind, Ctr, Docker}, t.Kind):
		return Target{}, targetError(s)
	case t.Name != "":
	case t.Kind == Kind:
		t.Name = "kind"
	case t.Kind == Ctr:
		t.Name = Kubelet
	}
	return t, nil
}

func targetError(s string) error {
	return advice.With(fmt.Errorf("unknown target %q of --load", s), "write one of "+strings.Join(Targets(), ", "))
}

// Digested returns two names of the image: REPOSITORY:TAG and REPOSITORY@DIGEST. For a pod's image with both tag and digest,
// the kubelet looks up the second name in containerd.
func (i *Image) Digested() (tagged, digested string) {
	return i.name.String(), i.name.repository + "@" + i.Digest()
}

// LoadCtr imports the image with the program ctr. If containerd does not listen on its own socket but on that of K3s
// and RKE2, ctr uses the latter.
func (i *Image) LoadCtr(ctx context.Context, namespace string) error {
	tagged, digested := i.Digested()
	argv := []string{"ctr", "-n", namespace}
	if !fileExists(socket) && fileExists(socketK3s) {
		argv = append(argv, "--address", socketK3s)
	}
	if err := runProgram(ctx, i.WriteOCI, append(slices.Clone(argv), "images", "import", "-")...); err != nil {
		return err
	}
	return runProgram(ctx, nil, append(argv, "images", "tag", "--force", tagged, digested)...)
}

// LoadDocker loads the image into Docker's daemon. Of several platforms it loads the daemon's own. It fails if the image
// lacks that platform.
func (i *Image) LoadDocker(ctx context.Context) error {
	if i.index == nil {
		return runProgram(ctx, i.WriteDocker, "docker", "load")
	}
	out, err := programOutput(ctx, "docker", "version", "--format", "{{.Server.Os}}/{{.Server.Arch}}")
	if err != nil {
		return err
	}
	only, err := i.Only(strings.TrimSpace(out))
	if err != nil {
		return advice.With(fmt.Errorf("docker load: %w", err), "add the --platform that is missing")
	}
	return runProgram(ctx, only.WriteDocker, "docker", "load")
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lastWords is how long the output of an ended program is still read. The children of the program may still write.
const lastWords = time.Second

// runProgram runs a program. write writes the program's stdin; nil means no stdin. The error contains the program's output.
// runProgram also fails if the program does not read all of stdin.
func runProgram(ctx context.Context, write func(io.Writer) error, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, lastWords
	run := func(stdin io.Reader) error {
		cmd.Stdin = stdin
		if err := cmd.Run(); err != nil {
			return programError(ctx, err, argv, said.String())
		}
		return nil
	}
	if write == nil {
		return run(nil)
	}
	err := Pipe(write, run)
	if errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("%s took only a part of the image", argv[0])
	}
	return err
}

// Pipe calls write and run concurrently; run reads what write writes. It returns the error of run, or the error of
// write if run succeeded. If run returns before it has read everything, write fails with io.ErrClosedPipe.
func Pipe(write func(io.Writer) error, run func(io.Reader) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := run(r)
	r.CloseWithError(io.ErrClosedPipe) // a program that ended early leaves a writer behind
	if writeErr := <-written; err == nil {
		return writeErr
	}
	return err
}

// programOutput runs a program and returns its stdout. The error contains its stderr.
func programOutput(ctx context.Context, argv ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, lastWords
	if err := cmd.Run(); err != nil {
		return "", programError(ctx, err, argv, stderr.String())
	}
	return stdout.String(), nil
}

func programError(ctx context.Context, err error, argv []string, said string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return advice.With(err, "install it, or write an archive by -o and import that on each node")
	}
	said = number.Clean(strings.Join(strings.Fields(said), " "))
	return advice.With(fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, said),
		"see whether its daemon runs, and whether you may use it")
}
