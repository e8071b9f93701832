package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processes returns the pids of the processes whose first argument begins with prefix, by that argument less the prefix.
func processes(prefix string) (map[string]int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, d := range dirs {
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err != nil {
			continue // it has just ended
		}
		first, _, _ := bytes.Cut(line, []byte{0})
		if name, ok := strings.CutPrefix(string(first), prefix); ok {
			found[name], err = strconv.Atoi(filepath.Base(d))
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// holders are the processes that hold a cluster's nodes and its switch, by node.
func holders(cluster string) (map[string]int, error) { return processes(processName(cluster, "")) }

// daemonPID finds a node's daemon by its name and the pid namespace that it shares with the node's first process.
func daemonPID(holder int, name string) (int, error) {
	home, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", holder))
	if err != nil {
		return 0, err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, d := range dirs {
		ns, err := os.Readlink(filepath.Join(d, "ns/pid"))
		if err != nil || ns != home {
			continue
		}
		line, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if first, _, _ := bytes.Cut(line, []byte{0}); err == nil && string(first) == name {
			return strconv.Atoi(filepath.Base(d))
		}
	}
	return 0, fmt.Errorf("no %s is running there", name)
}

// kill ends a process, with all of its pid namespace when it is the first one there, and waits until it is gone.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return eventually(10*time.Second, func() error {
		if alive(pid) {
			return fmt.Errorf("process %d does not end", pid)
		}
		return nil
	})
}

// alive is false for a zombie too: it holds nothing any more, and only its parent can bury it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(stat), ") ")
	return ok && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// nodeCommand is the command line of nsenter that runs something in all namespaces of a node.
func nodeCommand(holder int, args ...string) []string {
	return append([]string{"nsenter", "-t", strconv.Itoa(holder), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, args...)
}

// residentMemory is what the processes in a node's cgroups hold, pods included, in bytes; pages that several have count
// for each.
func residentMemory(cgroup string) (int64, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	var pages int64
	for _, d := range dirs {
		groups, err := os.ReadFile(filepath.Join(d, "cgroup"))
		if err != nil || !inGroup(string(groups), cgroup) {
			continue
		}
		statm, err := os.ReadFile(filepath.Join(d, "statm"))
		if f := strings.Fields(string(statm)); err == nil && len(f) > 1 {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s/statm: %w", d, err)
			}
			pages += n
		}
	}
	return pages * int64(os.Getpagesize()), nil
}

// inGroup says whether a process whose /proc/PID/cgroup is given is in a group of that name or below it.
func inGroup(groups, name string) bool {
	for line := range strings.Lines(groups) {
		if strings.Contains(strings.TrimSpace(line)+"/", "/"+name+"/") {
			return true
		}
	}
	return false
}
