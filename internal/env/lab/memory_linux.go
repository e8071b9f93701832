package lab

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// noMemoryError means that the state of a lab would not fit into memory. The kernel might then kill the program
// while it raises the lab. Need and Left are in bytes.
type noMemoryError struct {
	Need, Left int64
	// Where is the cgroup with the limit, "" for the machine's memory.
	Where string
}

func (e *noMemoryError) Error() string {
	where := "this machine has"
	if e.Where != "" {
		where = "the memory limit of " + e.Where + " leaves"
	}
	return fmt.Sprintf("the Services, policies and connections of this lab take about %s while they are programmed, and %s %s",
		formatBytes(e.Need), where, formatBytes(e.Left))
}

func formatBytes(n int64) string {
	s := number.Common("B", float64(n))
	return s.Format(float64(n)) + " " + s.Unit
}

// memoryLeft returns how much memory this process may still use, in bytes. where is the cgroup that limits it, or
// "" if the machine's memory does.
func memoryLeft() (left int64, where string) {
	left = math.MaxInt64
	if n, err := proc.MemoryAvailable(); err == nil {
		left = int64(min(n, math.MaxInt64))
	}
	if n, at, err := cgroup.MemoryLeft(); err == nil && at != "" && int64(min(n, math.MaxInt64)) < left {
		left, where = int64(n), at
	}
	return left, where
}

// podDescriptors returns how many file descriptors one pod takes while it is raised. They are for its namespace,
// the handle of its links, and its BPF programs, maps and links. The numbers were measured with 10 and 60 pods on
// each of two nodes.
func podDescriptors(v plan.Variant) int {
	switch p, _ := profile.Lookup(v.Profile()); {
	case p.Family == "cilium":
		return 13
	case p.Services == "ebpf":
		return 4
	}
	return 2
}

// raiseDescriptorLimit raises the limit of open files of this process to what all pods need. It fails if this process
// may not raise it so far.
func raiseDescriptorLimit(run plan.Lab, variants []plan.Variant) error {
	n := 200
	for _, v := range variants {
		l := v.Lab(run)
		n += l.Nodes * l.PodsPerNode * podDescriptors(v)
	}
	return advice.With(proc.NeedDescriptors(uint64(n)), "raise the limit (ulimit -n), or take fewer pods or profiles")
}

// checkMemory returns a *noMemoryError if the state of all variants together needs more than left bytes.
func checkMemory(l plan.Lab, variants []plan.Variant, left int64, where string) error {
	need := l.Memory(variants)
	if need <= left {
		return nil
	}
	way := "take fewer of them, of nodes or of profiles in one run, or raise the limit"
	if l.ServiceProxy != condition.ProxyNftables {
		way += "; service-proxy=nftables and eBPF profiles need less for Services"
	}
	return advice.With(&noMemoryError{need, left, where}, way)
}
