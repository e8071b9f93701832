package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hierarchy is one mounted cgroup tree: cgroup v2, or one of version 1.
type hierarchy struct {
	// mount is its mount point, own the directory of the process in it.
	mount, own string
	// option is its mount option: the controllers of version 1, "" for version 2.
	option string
}

func (h hierarchy) v2() bool { return h.option == "" }
func (h hierarchy) controls(c string) bool {
	return strings.Contains(","+h.option+",", ","+c+",")
}

// hierarchies returns those of this process.
func hierarchies() ([]hierarchy, error) { return hierarchiesOf("self") }

// hierarchiesOf returns the hierarchies of a process by its pid, as this process sees them.
func hierarchiesOf(pid string) ([]hierarchy, error) {
	own, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	found := parseHierarchies(string(own), string(mounts))
	if len(found) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}
	return found, nil
}

// parseHierarchies joins /proc/PID/cgroup and /proc/self/mountinfo. It omits hierarchies that are not mounted.
func parseHierarchies(own, mountinfo string) []hierarchy {
	paths := map[string]string{} // by controllers, "" for version 2
	for line := range strings.Lines(own) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			paths[f[1]] = f[2]
		}
	}
	var found []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		option := ""
		switch right[0] {
		case "cgroup2":
		case "cgroup":
			option = strings.TrimPrefix(right[2], "rw,")
		default:
			continue
		}
		path, ok := paths[option]
		if !ok {
			continue
		}
		delete(paths, option) // a tree that is mounted twice counts once
		below, _ := strings.CutPrefix(path, strings.TrimSuffix(left[3], "/"))
		found = append(found, hierarchy{mount: left[4], own: filepath.Join(left[4], below), option: option})
	}
	return found
}

// joinCgroups moves this process into groups of the given name: below its own group in version 1; at the top of a
// version 2 tree, where a group with processes cannot delegate controllers. The caller then unshares its cgroup
// namespace and calls partDaemons in it.
func joinCgroups(all []hierarchy, name string) error {
	for _, h := range all {
		parent := h.own
		if h.v2() && len(all) == 1 {
			parent = h.mount
			enableControllers(parent)
		}
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if h.controls("cpuset") {
			if err := inheritCPUs(parent, dir); err != nil {
				return err
			}
		}
		if err := joinGroup(dir); err != nil {
			return err
		}
	}
	return nil
}

// joinGroup moves this process with all its threads.
func joinGroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// inheritCPUs sets the CPUs and memory nodes of a new group of version 1, which it does not inherit.
func inheritCPUs(parent, dir string) error {
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(parent, f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), text, 0); err != nil {
			return err
		}
	}
	return nil
}

// enableControllers delegates the available controllers one by one: a missing one is a problem only for programs that
// need it.
func enableControllers(dir string) {
	for _, c := range []string{"cpuset", "cpu", "io", "memory", "pids", "hugetlb"} {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
}

// partDaemons moves the node's daemons, of which this process is the first, into a group of their own, confined to CPUs
// ("" for all). Kubelets keep pods elsewhere. The groups have their paths in the node's cgroup namespace: its own
// groups are the roots.
func partDaemons(all []hierarchy, cpus string) error {
	for _, h := range all {
		pure := h.v2() && len(all) == 1
		if !pure && !h.controls("cpuset") {
			continue
		}
		dir := filepath.Join(h.mount, "cnibench-daemons")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if !pure {
			if err := inheritCPUs(h.mount, dir); err != nil {
				return err
			}
		}
		if err := joinGroup(dir); err != nil {
			return err
		}
		if pure {
			enableControllers(h.mount) // only now that no process is in the node's top group
		}
		if cpus == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cpuset.cpus"), []byte(cpus), 0); err != nil {
			return fmt.Errorf("confine daemons to CPUs %s: %w", cpus, err)
		}
	}
	return nil
}

// cgroupsOf returns the groups of a cluster's nodes, anywhere in the trees: the process that made them may have been in
// another group than this one.
func cgroupsOf(cluster string) ([]string, error) {
	prefix := processName(cluster, "")
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a group that has just gone
		}
		if strings.HasPrefix(d.Name(), prefix) {
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// removalEvery is the time between attempts to remove a group that killed processes are still in.
const removalEvery = 20 * time.Millisecond

// removeCgroup removes a group and those below it. Killed processes leave their group a moment later.
func removeCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = poll(context.Background(), removalEvery, 5*time.Second, func(context.Context) error {
			if err := os.Remove(dirs[i]); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
	}
	return err
}
