package proc

import (
	"slices"
	"testing"
)

func TestThrottleFiles(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		want   []string
	}{
		"v2":                {"0::/kubepods/pod1/a\n", []string{"/sys/fs/cgroup/kubepods/pod1/a/cpu.stat", "/sys/fs/cgroup/cpu.stat"}},
		"v2 in a container": {"0::/\n", []string{"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu.stat"}},
		"v1": {"9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n3:cpuset:/c\n", []string{
			"/sys/fs/cgroup/cpu,cpuacct/a:b/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"}},
		"both": {"1:cpu:/a\n0::/b\n", []string{
			"/sys/fs/cgroup/cpu/a/cpu.stat", "/sys/fs/cgroup/b/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu.stat"}},
		"none":    {"", nil},
		"garbage": {"cpu\n::\n5:cpuset:/\n", nil},
	} {
		if got := throttleFiles([]byte(c.groups)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestParseThrottling(t *testing.T) {
	for text, want := range map[string]int64{
		"usage_usec 7\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n": 1_500_000,
		"nr_periods 3\nnr_throttled 2\nthrottled_time 1500\n":               1500,
		"throttled_usec 0\n": 0,
		"usage_usec 7\n":     -1, "": -1, "throttled_usec x\n": -1, "throttled_usec -1\n": -1, "throttled_usec\n": -1,
	} {
		got, ok := ParseThrottling([]byte(text))
		if ok != (want >= 0) || ok && got.StoppedNs != want {
			t.Errorf("%q: %+v, %v, want %d", text, got, ok, want)
		}
	}
	got, _ := ParseThrottling([]byte("usage_usec 5\nnr_periods 12\nnr_throttled 3\nthrottled_usec 900\njunk\n"))
	if got.Periods != 12 || got.Throttled != 3 {
		t.Errorf("%+v", got)
	}
}
