package lab

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestNoMemory: 100,000 endpoints in the chains of kube-proxy are refused where 300 MB are left, before anything is made,
// with the cgroup that has the limit and a way out. In nftables they fit.
func TestNoMemory(t *testing.T) {
	l := plan.Default().Lab
	l.Services, l.Endpoints = 100, 1000
	ptp := plan.Variants("ptp")
	err := checkMemory(l, ptp, 300<<20, "/sys/fs/cgroup/job")
	var short *noMemoryError
	if !errors.As(err, &short) || short.Need < 700<<20 || short.Need > 1000<<20 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"about 8", "the memory limit of /sys/fs/cgroup/job leaves 315 MB"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if hint := advice.Of(err); !strings.Contains(hint, "service-proxy=nftables") {
		t.Errorf("the way out is %q", hint)
	}
	if err := checkMemory(l, plan.Variants("ptp(service-proxy=nftables)", "cilium-native"), 300<<20, ""); err != nil {
		t.Error(err)
	}
	if err := checkMemory(l, plan.Variants("ptp", "ptp~twin"), 900<<20, ""); err == nil {
		t.Error("a twin takes as much again")
	}
	if err := checkMemory(plan.Default().Lab, ptp, 1<<20, ""); err != nil {
		t.Errorf("a lab without state: %v", err)
	}
}

// TestTooManyPods: pods that need more open files than any process may have are refused, with the way out.
func TestTooManyPods(t *testing.T) {
	l := plan.Default().Lab
	l.Nodes, l.PodsPerNode = 1<<20, 1<<20
	err := raiseDescriptorLimit(l, plan.Variants("cilium-native"))
	if err == nil || !strings.Contains(err.Error(), "open files are needed") || !strings.Contains(advice.Of(err), "ulimit -n") {
		t.Errorf("got %v, way out %q", err, advice.Of(err))
	}
	if err := raiseDescriptorLimit(plan.Default().Lab, plan.Variants("bridge", "cilium-native")); err != nil {
		t.Error(err)
	}
}
