package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processes yields every process of the machine: its pid and its first argument, "" if it has just ended.
func processes(yield func(pid int, name string) bool) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, d := range dirs {
		line, _ := os.ReadFile(d + "/cmdline")
		first, _, _ := bytes.Cut(line, []byte{0})
		pid, _ := strconv.Atoi(filepath.Base(d))
		if !yield(pid, string(first)) {
			return
		}
	}
}

// holders returns the pids of the processes that hold a cluster's nodes and its switch, by node.
func holders(cluster string) map[string]int {
	found := map[string]int{}
	for pid, process := range processes {
		if node, ok := strings.CutPrefix(process, processName(cluster, "")); ok {
			found[node] = pid
		}
	}
	return found
}

// daemonPID returns the pid of a node's daemon. It finds it by its name and the pid namespace that it shares with the
// node's first process.
func daemonPID(holder int, name string) (int, error) {
	home, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", holder))
	if err != nil {
		return 0, err
	}
	for pid, process := range processes {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && ns == home && process == name {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("%s is not running", name)
}

// kill kills a process and waits for its end. The first process of a pid namespace takes the others with it.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return poll(context.Background(), removalEvery, 10*time.Second, func(context.Context) error {
		if alive(pid) {
			return fmt.Errorf("process %d does not end", pid)
		}
		return nil
	})
}

// alive returns false for a zombie too: it holds no resources, and only its parent can reap it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	return ok && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// nodeCommand returns a command that runs in all namespaces of a node and in its group of cgroup v2: by the group,
// Cilium recognizes the sockets that it balances. Close the result after the command has started.
func nodeCommand(ctx context.Context, holder int, args ...string) (*exec.Cmd, io.Closer, error) {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(holder), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+nodePath)
	all, err := hierarchiesOf(strconv.Itoa(holder))
	if err != nil {
		return nil, nil, err
	}
	for _, h := range all {
		if !h.v2() {
			continue
		}
		group, err := os.Open(h.own)
		if err != nil {
			return nil, nil, err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
		return cmd, group, nil
	}
	return cmd, io.NopCloser(nil), nil
}

// residentMemory returns the resident bytes of the processes in a node's cgroups, pods included. A shared page counts
// for each process.
func residentMemory(cgroup string) int64 {
	var all int64
	for pid := range processes {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil || !inGroup(string(groups), cgroup) {
			continue
		}
		var size, resident int64 // 0 for a process that has just ended
		statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		_, _ = fmt.Sscan(string(statm), &size, &resident)
		all += resident
	}
	return all * int64(os.Getpagesize())
}

// inGroup reports whether /proc/PID/cgroup lists a group of the given name or one below it.
func inGroup(groups, name string) bool {
	for line := range strings.Lines(groups) {
		if strings.Contains(strings.TrimSpace(line)+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}
