package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Inotify instances that a cluster holds, as counted: kubelet 6, containerd 2, kube-proxy 1; API server and controller
// manager 7 more. A cluster that does not get them never becomes ready, and only its logs say why.
const (
	inotifyPerNode      = 9
	inotifyControlPlane = 7
)

// roomForInotify says whether the machine, which limits instances for each user, has enough for n more nodes.
func roomForInotify(n int) error {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("fs.inotify.max_user_instances: %w", err)
	}
	used, err := inotifyInstances()
	if err != nil {
		return err
	}
	if need := n*inotifyPerNode + inotifyControlPlane; used+need > limit {
		return advice.With(fmt.Errorf("%d nodes need %d inotify instances; %d of %d are in use (fs.inotify.max_user_instances)", n, need, used, limit),
			"take another cluster down, ask for fewer nodes, or: sysctl -w fs.inotify.max_user_instances=512")
	}
	return nil
}

// inotifyInstances counts those of every process of root, as far as it can be seen.
func inotifyInstances() (int, error) {
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n, nil
}
