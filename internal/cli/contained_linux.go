package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// containedVerb is the command of an agent that runs under the conditions of a pod: with a seccomp filter, and in cgroups
// as deep as kubelet's. Both slow down system calls and thread switches, whatever the dataplane. A lab that is compared
// with a real cluster needs the same cost.
const containedVerb = "contained-agent"

// containedPrefix is the prefix of the names of the cgroup trees.
const containedPrefix = "cnibench-contained"

// claimGroups makes the cgroup tree for contained agents, and removes the trees that killed runs have left. remove deletes
// the new tree. path is "" if the cpu controller has no cgroup v1 hierarchy.
func claimGroups(ctx context.Context) (path string, remove func() error, err error) {
	root, err := cgroup.Hierarchy("cpu")
	if errors.Is(err, cgroup.ErrNoHierarchy) {
		return "", func() error { return nil }, nil
	}
	if err != nil {
		return "", nil, err
	}
	if _, err := cgroup.Sweep(ctx, root, containedPrefix); err != nil {
		return "", nil, fmt.Errorf("sweep what an earlier run left: %w", err)
	}
	tree, err := cgroup.Claim(ctx, cgroup.Name(root, containedPrefix))
	if err != nil {
		return "", nil, err
	}
	return tree.Path(), func() error {
		down, stop := context.WithTimeout(context.WithoutCancel(ctx), env.CloseTimeout)
		defer stop()
		return errors.Join(cgroup.Remove(down, tree.Path()), tree.Close())
	}, nil
}

// containedCommand returns the command of containedVerb. Its argument is the cgroup tree, "" for none.
func containedCommand(p *program) *cobra.Command {
	agent := agentCommand(p)
	serve := agent.RunE
	agent.Use, agent.Args = containedVerb+" TREE", cobra.ExactArgs(1)
	agent.Short = "Run one end of a trial in the surroundings of a pod"
	agent.RunE = func(cmd *cobra.Command, args []string) error {
		if err := containProcess(args[0]); err != nil {
			return err
		}
		return serve(cmd, nil)
	}
	return agent
}

// containProcess moves this process into its cgroup below tree, whose path podGroup returns, and applies the seccomp
// filter. If tree is "", it only applies the filter.
func containProcess(tree string) error {
	if tree != "" {
		path, err := podGroup(tree)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := cgroup.Join(path); err != nil {
			return err
		}
	}
	return thread.FilterCalls()
}

// podGroup returns the path of this process's cgroup below tree, at the depth of a pod's container. Processes of the same
// node and network namespace share a cgroup.
func podGroup(tree string) (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	netns, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "", err
	}
	pod := strings.Trim(strings.TrimPrefix(netns, "net:"), "[]")
	return filepath.Join(tree, nodeGroupName(string(groups)), "kubepods", "burstable", "pod"+pod, "agent"), nil
}

// nodeGroupName returns the cgroup v2 path of a process with _ in place of /. In the lab the path names the tree, the profile
// and the node. groups is the text of /proc/PID/cgroup. The result is "outside" for the root or without a v2 entry.
func nodeGroupName(groups string) string {
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok && path != "" {
			return strings.ReplaceAll(path, "/", "_")
		}
	}
	return "outside"
}
