package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/image/imagetest"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// docker is a Docker with the nodes of one cluster, test: it answers what kind asks, and writes down what is executed.
const docker = `#!/bin/sh
case "$*" in
-v) echo "Docker version 28.0.0, build 0" ;;
*label=io.x-k8s.kind.cluster=test*) printf 'test-control-plane\ntest-worker\ntest-external-load-balancer\n' ;;
*label=io.x-k8s.kind.cluster=*) ;;
*label=io.x-k8s.kind.cluster*) echo test ;;
*kind.role*load-balancer) echo external-load-balancer ;;
*kind.role*) echo worker ;;
*exec*import*)
	[ -z "$FAULT" ] || { cat > /dev/null; echo "no space left" >&2; exit 1; }
	cat > "$OUT/archive.$4"
	printf '%s\n' "$*" >> "$OUT/exec" ;;
*exec*) printf '%s\n' "$*" >> "$OUT/exec" ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

func fakeDocker(t *testing.T) (out string) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("OUT", out)
	return out
}

func testImage(t *testing.T) *image.Image {
	t.Helper()
	b, err := image.ParseBinary("linux/amd64=" + imagetest.Cnibench("amd64", "v1.0.0").File(t))
	if err != nil {
		t.Fatal(err)
	}
	i, err := image.Build(image.Spec{Name: image.DefaultName("v1.0.0"), Version: "v1.0.0", Binaries: []image.Binary{b}})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestLoad(t *testing.T) {
	out, i := fakeDocker(t), testImage(t)
	names, err := LoadImage(t.Context(), "test", i)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "test-control-plane test-worker" {
		t.Errorf("loaded into %s", got)
	}
	tagged, digested := i.Digested()
	var want strings.Builder
	for _, n := range names {
		want.WriteString("exec --privileged -i " + n + " ctr --namespace k8s.io images import -\n")
		want.WriteString("exec --privileged " + n + " ctr --namespace k8s.io images tag --force " + tagged + " " + digested + "\n")
		if archive := read(t, filepath.Join(out, "archive."+n)); !strings.Contains(archive, i.Digest()) {
			t.Errorf("node %s got %d bytes without the digest", n, len(archive))
		}
	}
	if got := read(t, filepath.Join(out, "exec")); got != want.String() {
		t.Errorf("executed\n%s, want\n%s", got, want.String())
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFaults(t *testing.T) {
	fakeDocker(t)
	i := testImage(t)
	_, err := LoadImage(t.Context(), "other", i)
	if err == nil || !strings.Contains(err.Error(), "no kind cluster other") || !strings.Contains(advice.Of(err), "kind:test") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := LoadImage(ctx, "test", i); !errors.Is(err, reason) {
		t.Errorf("interrupted: %v", err)
	}
	t.Setenv("FAULT", "disk")
	if _, err := LoadImage(t.Context(), "test", i); err == nil || !strings.Contains(err.Error(), "kind node test-control-plane") || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := LoadImage(t.Context(), "test", i); err == nil || !strings.Contains(advice.Of(err), "Docker, Podman or nerdctl") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
}
