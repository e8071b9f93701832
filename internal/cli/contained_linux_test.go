package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
)

func TestNodeOf(t *testing.T) {
	for groups, want := range map[string]string{
		"3:cpuset:/\n0::/cnibench-7-x/flannel-vxlan/node-1\n": "cnibench-7-x_flannel-vxlan_node-1",
		"0::/\n":      "outside",
		"1:cpu:/x\n":  "outside",
		"":            "outside",
		"0::/a\n1::b": "a",
	} {
		if got := nodeGroupName(groups); got != want {
			t.Errorf("%q: got %q, want %q", groups, got, want)
		}
	}
}

// TestPodGroup: processes of one network namespace share a group as deep as a container's below that of its node.
func TestPodGroup(t *testing.T) {
	path, err := podGroup("/tree")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimPrefix(path, "/tree/"), "/")
	if len(parts) != 5 || parts[1] != "kubepods" || !strings.HasPrefix(parts[3], "pod4") {
		t.Errorf("got %q", path)
	}
	if again, _ := podGroup("/tree"); again != path {
		t.Errorf("first %q, then %q", path, again)
	}
}

func TestClaimGroups(t *testing.T) {
	if _, err := cgroup.Hierarchy("cpu"); errors.Is(err, cgroup.ErrNoHierarchy) || os.Geteuid() != 0 {
		t.Skip("needs root and a cgroup v1 hierarchy of cpu")
	}
	tree, remove, err := claimGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "node", "kubepods"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", tree, err)
	}
}
