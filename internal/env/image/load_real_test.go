package image

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/image/imagetest"
)

// startContainerd runs a containerd of our own, or skips. It returns a function that runs ctr on it.
func startContainerd(t *testing.T) func(t *testing.T, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	// make e2e leaves its programs there.
	if cache, err := os.UserCacheDir(); err == nil {
		dirs, _ := filepath.Glob(filepath.Join(cache, "cnibench", "e2e", "*", "bin"))
		t.Setenv("PATH", strings.Join(append([]string{os.Getenv("PATH")}, dirs...), string(os.PathListSeparator)))
	}
	for _, name := range []string{"containerd", "ctr"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: make e2e, or go install github.com/containerd/containerd/v2/cmd/%s@v2.4.2", name, name)
		}
	}
	dir, err := os.MkdirTemp("", "ctrd") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "c.sock")
	config := filepath.Join(dir, "config.toml")
	write(t, config, fmt.Sprintf(`version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri"]
[grpc]
address = %q
[ttrpc]
address = %q
`, dir+"/root", dir+"/state", socket, socket+".ttrpc"))
	var log bytes.Buffer
	daemon := exec.Command("containerd", "--config", config)
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
		if t.Failed() {
			t.Logf("containerd said:\n%s", log.Bytes()[max(0, log.Len()-2000):])
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("containerd does not listen")
		}
	}
	t.Setenv("CONTAINERD_ADDRESS", socket)
	return func(t *testing.T, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command("ctr", append([]string{"-a", socket, "-n", Kubelet}, args...)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("ctr %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
		}
		return stdout.String()
	}
}

// TestRealContainerd loads images in every way that needs nothing but containerd, and mounts what came of it.
func TestRealContainerd(t *testing.T) {
	ctr := startContainerd(t)
	for name, load := range map[string]func(*testing.T, *Image) error{
		"ctr": func(t *testing.T, i *Image) error { return i.LoadCtr(t.Context(), Kubelet) },
		"docker archive": func(t *testing.T, i *Image) error {
			file := filepath.Join(t.TempDir(), "x.tar")
			write(t, file, string(archived(t, i.WriteDocker)))
			ctr(t, "images", "import", file)
			return nil
		},
	} {
		for _, arch := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
			if name == "docker archive" && len(arch) > 1 {
				continue
			}
			t.Run(name+"/"+strings.Join(arch, "+"), func(t *testing.T) {
				i := mustBuild(t, arch...)
				tagged, digested := i.Digested()
				for range 2 { // the second finds everything there
					if err := load(t, i); err != nil {
						t.Fatal(err)
					}
				}
				list := ctr(t, "images", "ls")
				names := []string{tagged}
				if name != "docker archive" {
					names = append(names, digested)
					if !strings.Contains(list, i.Digest()) {
						t.Errorf("the digest is another:\n%s", list)
					}
				}
				for _, n := range names {
					if !strings.Contains(list, n+" ") {
						t.Errorf("%s is not in\n%s", n, list)
					}
				}
				// Nothing must depend on the name that the archive had.
				ctr(t, "images", "tag", tagged, "cnibench.local/other:1")
				ctr(t, "images", "rm", "--sync", "cnibench.local/other:1") // collects garbage
				if out := ctr(t, "images", "check", "name=="+tagged); !strings.Contains(out, "complete") {
					t.Errorf("check: %s", out)
				}
				mount := t.TempDir()
				ctr(t, "images", "mount", tagged, mount)
				got, err := os.ReadFile(filepath.Join(mount, "cnibench"))
				ctr(t, "images", "unmount", "--rm", mount)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(imagetest.Cnibench("amd64", testVersion).File(t))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Error("the program in the mounted image is not the one that was given")
				}
				for _, n := range names {
					ctr(t, "images", "rm", "--sync", n)
				}
				if out := ctr(t, "content", "ls", "-q"); strings.TrimSpace(out) != "" {
					t.Errorf("content is left that nobody names: %s", out)
				}
			})
		}
	}
}
