package cgroup

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryLeft returns how many bytes this process may still use before the nearest limit of its cgroups. path is the
// cgroup with that limit, "" if none has a limit. Page cache that the kernel would evict first counts as left.
func MemoryLeft() (left uint64, path string, err error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, "", err
	}
	if mount, err := Hierarchy("memory"); err == nil {
		left, path = nearestLimit(mount, groupPath(self, "memory"), memoryFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"})
		return left, path, nil
	}
	mount, err := Root()
	if errors.Is(err, ErrNoMount) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	left, path = nearestLimit(mount, groupPath(self, ""), memoryFiles{"memory.max", "memory.current", "inactive_file"})
	return left, path, nil
}

// memoryFiles names the files with the limit and the usage of a group, and the line of memory.stat with the cache.
type memoryFiles struct{ limit, usage, cache string }

// groupPath returns the path of a process's group in the hierarchy of a controller; controller "" means cgroup v2. self
// is the content of /proc/PID/cgroup. If the hierarchy is not listed there, it returns "/".
func groupPath(self []byte, controller string) string {
	for line := range strings.Lines(string(self)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c == controller {
				return f[2]
			}
		}
	}
	return "/"
}

// unlimited is the least value of a limit in cgroup v1 that means "no limit".
const unlimited = math.MaxInt64 / 2

// nearestLimit compares the group at path under mount and all groups above it. It returns how many bytes are left in
// the group that is nearest to its limit, and the directory of that group. at is "" if no group has a limit.
func nearestLimit(mount, path string, of memoryFiles) (left uint64, at string) {
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		group := filepath.Join(mount, path)
		limit, ok := readNumber(filepath.Join(group, of.limit))
		used, known := readNumber(filepath.Join(group, of.usage))
		if ok && known && limit < unlimited {
			used -= min(used, cachedBytes(group, of.cache))
			if n := limit - min(limit, used); at == "" || n < left {
				left, at = n, group
			}
		}
		if path == "/" {
			return left, at
		}
	}
}

func readNumber(name string) (uint64, bool) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, false // the root has no limit, and neither has a word such as "max"
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

func cachedBytes(group, line string) (bytes uint64) {
	b, _ := os.ReadFile(filepath.Join(group, "memory.stat"))
	for l := range strings.Lines(string(b)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(l), " "); name == line {
			bytes, _ = strconv.ParseUint(n, 10, 64)
		}
	}
	return bytes
}
