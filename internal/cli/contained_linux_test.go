package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/run"
)

func TestNodeOf(t *testing.T) {
	for groups, want := range map[string]string{
		"3:cpuset:/\n0::/cnibench-7-x/flannel-vxlan/node-1\n": "cnibench-7-x_flannel-vxlan_node-1",
		"0::/\n":      "outside",
		"1:cpu:/x\n":  "outside",
		"":            "outside",
		"0::/a\n1::b": "a",
	} {
		if got := nodeOf(groups); got != want {
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

// TestTwoPlaces: a name with a context is of a cluster.
func TestTwoPlaces(t *testing.T) {
	here, there := &labEnvironment{}, &clusterEnvironment{}
	e := &twoPlaces{lab: here, clusters: there}
	for name, want := range map[string]run.Environment{
		"host": here, "host" + plan.TwinSuffix: here, "flannel-vxlan": here,
		"host@a": there, "host@a" + plan.TwinSuffix: there, "flannel-vxlan@a": there,
	} {
		if e.of(name) != want {
			t.Errorf("%s is in the other place", name)
		}
	}
	if _, err := e.Full("host@a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("full tables of a cluster: %v", err)
	}
}
