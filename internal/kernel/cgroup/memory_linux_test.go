package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNearestLimit has a tree of groups: the nearest limit counts wherever it is, less what is used beyond the cache.
func TestNearestLimit(t *testing.T) {
	mount := t.TempDir()
	group := func(path, limit, used, stat string) {
		dir := filepath.Join(mount, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"memory.max": limit, "memory.current": used, "memory.stat": stat} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	group("a", "1000", "900", "file 7\ninactive_file 300")
	group("a/b", "max", "700", "")
	group("a/b/c", "600", "500", "")
	group("d", "max", "1", "")
	of := memoryFiles{"memory.max", "memory.current", "inactive_file"}
	for path, want := range map[string]struct {
		left uint64
		at   string
	}{
		"/a/b/c": {100, "a/b/c"}, "/a/b": {400, "a"}, "/d": {0, ""}, "/not/here": {0, ""}, "/a/b/c/gone": {100, "a/b/c"},
	} {
		left, at := nearestLimit(mount, path, of)
		if want.at != "" {
			want.at = filepath.Join(mount, want.at)
		}
		if left != want.left || at != want.at {
			t.Errorf("%s: %d left in %q, want %d in %q", path, left, at, want.left, want.at)
		}
	}
}

func TestBelow(t *testing.T) {
	self := []byte("4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/d:e\n")
	for controller, want := range map[string]string{"memory": "/a/b", "cpuacct": "/c", "": "/d:e", "pids": "/"} {
		if got := groupPath(self, controller); got != want {
			t.Errorf("%q: %q, want %q", controller, got, want)
		}
	}
}
