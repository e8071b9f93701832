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
	// mount is where it is mounted, own the directory of the process in it.
	mount, own string
	// option is what `mount -o` calls it: controllers of version 1, "" for version 2.
	option string
}

func (h hierarchy) v2() bool { return h.option == "" }
func (h hierarchy) controls(c string) bool {
	return strings.Contains(","+h.option+",", ","+c+",")
}

// hierarchies are those that this process is in.
func hierarchies() ([]hierarchy, error) { return hierarchiesOf("self") }

// hierarchiesOf are those of a process by its pid, as this process sees them.
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

// parseHierarchies joins /proc/PID/cgroup and /proc/self/mountinfo; what is not mounted is left out.
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

// joinCgroups puts this process into groups of the given name, below its own in version 1, at the top in a pure version 2
// tree, where a group with processes can hand no controllers down. The caller then unshares its cgroup namespace and,
// in it, calls partDaemons.
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

// inheritCPUs gives a new group of version 1 what it does not get by itself.
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

// enableControllers hands down what there is, one by one: what is missing concerns only who needs it.
func enableControllers(dir string) {
	for _, c := range []string{"cpuset", "cpu", "io", "memory", "pids", "hugetlb"} {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
}

// partDaemons moves the node's daemons, of which this process is the first, into a group of their own, confined to CPUs
// ("" for all). Kubelets keep pods elsewhere. The groups are named as the node sees them: its own are the roots.
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

// cgroupsOf are the groups of a cluster's nodes, wherever in the trees they are: the process that made them may have been
// somewhere else than this one.
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

// removalEvery is the time between attempts to remove what killed processes still hold.
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
