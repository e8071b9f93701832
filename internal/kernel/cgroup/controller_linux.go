package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ErrNoHierarchy means that a controller has no cgroup v1 hierarchy of its own: it is in the v2 tree, or nowhere.
var ErrNoHierarchy = errors.New("it has no cgroup v1 hierarchy")

// Hierarchy returns where the cgroup v1 hierarchy of a controller is mounted, such as "cpu". Groups can be claimed, joined
// and removed there as in the v2 tree, with the limits that the controller gives a new group: none, for cpu.
func Hierarchy(controller string) (string, error) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	return hierarchyIn(b, controller)
}

func hierarchyIn(mounts []byte, controller string) (string, error) {
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) >= 4 && f[2] == "cgroup" && slices.Contains(strings.Split(f[3], ","), controller) {
			return unescape(f[1]), nil
		}
	}
	return "", fmt.Errorf("controller %s: %w", controller, ErrNoHierarchy)
}
