package cgroup

import "testing"

func TestHierarchyIn(t *testing.T) {
	const mounts = `cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/with\040blank cgroup rw,pids 0 0
`
	for controller, want := range map[string]string{
		"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuset": "/sys/fs/cgroup/cpuset", "pids": "/sys/fs/cgroup/with blank", "memory": "",
	} {
		if got := findMount([]byte(mounts), "cgroup", controller); got != want {
			t.Errorf("%s: got %q, want %q", controller, got, want)
		}
	}
}
