package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func root(t *testing.T) string {
	t.Helper()
	r, err := Root()
	if errors.Is(err, ErrNoMount) {
		t.Skip("cgroup v2 is not mounted")
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claimed makes a tree that the test removes.
func claimed(t *testing.T, prefix string) *Group {
	t.Helper()
	g, err := Claim(t.Context(), Name(root(t), prefix))
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		t.Skipf("no right to make a cgroup: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(context.Background(), g.Path()); err != nil {
			t.Error(err)
		}
		g.Close()
	})
	return g
}

func TestMounted(t *testing.T) {
	for mounts, want := range map[string]string{
		"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n": "/sys/fs/cgroup",
		"tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\nnone /a\\040b cgroup2 rw 0 0\n": "/a b",
	} {
		if got := findMount([]byte(mounts), "cgroup2", ""); got != want {
			t.Errorf("%q: got %q, want %q", mounts, got, want)
		}
	}
	for _, mounts := range []string{"", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", "cgroup2\n"} {
		if got := findMount([]byte(mounts), "cgroup2", ""); got != "" {
			t.Errorf("%q: got %q", mounts, got)
		}
	}
}

// sleeper starts a process in g.
func sleeper(t *testing.T, g *Group) (pid int, ended chan error) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD(), Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd.Process.Pid, ended
}

func TestRemoveKillsWhatRuns(t *testing.T) {
	tree := claimed(t, "cgrouptest")
	node, err := tree.Child("profile/node-1")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	pid, ended := sleeper(t, node)
	if pids, err := os.ReadFile(node.Path() + "/cgroup.procs"); err != nil || string(pids) != fmt.Sprintln(pid) {
		t.Errorf("processes %q (%v), want %d", pids, err, pid)
	}
	if pids, err := os.ReadFile(tree.Path() + "/cgroup.procs"); err != nil || len(pids) != 0 {
		t.Errorf("processes of the tree itself %q (%v)", pids, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := Remove(ctx, tree.Path()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the process ended with %v", err)
	}
	if _, err := os.Stat(tree.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	if err := Remove(ctx, tree.Path()); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestSweepTakesTheDeadAndLeavesTheLiving(t *testing.T) {
	const prefix = "cgroupsweep"
	living, dead := claimed(t, prefix), claimed(t, prefix)
	child, err := dead.Child("a/b")
	if err != nil {
		t.Fatal(err)
	}
	child.Close()
	dead.Close() // the lock goes as it would with its owner
	swept, err := Sweep(t.Context(), root(t), prefix)
	if err != nil || !slices.Equal(swept, []string{dead.Path()}) {
		t.Errorf("swept %v (%v), want %s alone", swept, err, dead.Path())
	}
	if _, err := os.Stat(living.Path()); err != nil {
		t.Errorf("the living one: %v", err)
	}
	if _, err := os.Stat(dead.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead one: %v", err)
	}
}

func TestClaimsDoNotMeet(t *testing.T) {
	a, b := claimed(t, "cgrouptest"), claimed(t, "cgrouptest")
	if a.Path() == b.Path() || filepath.Dir(a.Path()) != root(t) {
		t.Errorf("%s and %s", a.Path(), b.Path())
	}
	if free, err := mustOpen(t, a.Path()).tryLock(); err != nil || free {
		t.Errorf("the lock of a claimed tree is free (%v)", err)
	}
}

// TestClaimBesideSweepers claims trees while others sweep all the time: each claimed tree must stand.
func TestClaimBesideSweepers(t *testing.T) {
	const prefix = "cgrouprace"
	ctx, stop := context.WithCancel(t.Context())
	var sweepers sync.WaitGroup
	dir := root(t)
	for range 3 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				if _, err := Sweep(ctx, dir, prefix); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		g := claimed(t, prefix)
		if _, err := os.Stat(g.Path()); err != nil {
			t.Errorf("a claimed tree was swept: %v", err)
		}
	}
	stop()
	sweepers.Wait()
}

func mustOpen(t *testing.T, path string) *Group {
	t.Helper()
	g, err := openGroup(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}
