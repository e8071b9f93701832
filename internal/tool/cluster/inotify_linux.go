package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// The inotify instances of a cluster, counted on a running one: kubelet 6, containerd 2, kube-proxy 1; API server and
// controller manager 7. If there are too few, a cluster never becomes ready, and only its logs have the reason.
const (
	inotifyPerNode      = 9
	inotifyControlPlane = 7
)

// roomForInotify returns an error if the limit of instances per user is too low for n more nodes.
func roomForInotify(n int) error {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("fs.inotify.max_user_instances: %w", err)
	}
	used := inotifyInstances()
	if need := n*inotifyPerNode + inotifyControlPlane; used+need > limit {
		return advice.With(fmt.Errorf("%d nodes need %d inotify instances; %d of %d are in use (fs.inotify.max_user_instances)", n, need, used, limit),
			"remove another cluster, use fewer --nodes, or run sysctl -w fs.inotify.max_user_instances=512")
	}
	return nil
}

// inotifyInstances returns the number of inotify instances of all processes that this one can see.
func inotifyInstances() (n int) {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}
