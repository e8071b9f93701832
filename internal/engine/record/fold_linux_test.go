package record

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// TestFold counts samples in their slices: those of load threads, those of other tasks apart, and stacks that the kernel cut.
func TestFold(t *testing.T) {
	f := folder{
		Window: Window{BeganNs: 1000, Slices: []sample.Interval{{EndNs: 100}, {StartNs: 100, EndNs: 200}}, Threads: map[int]string{7: "pod"}, CPUs: []int{1}},
		stacks: &sample.Stacks{}, deepest: 3,
	}
	for _, s := range []perf.Sample{
		{Time: 999, Task: 7}, // before the window
		{Time: 1000, Task: 7, Kernel: []uint64{1, 2}, Period: 300},                    // in the first slice
		{Time: 1150, Task: 7, Kernel: []uint64{1, 2}, User: []uint64{3}, Period: 700}, // in the second, with as many frames as there is room for
		{Time: 1150, Task: -1, CPU: 1}, {Time: 1150, Task: -1, CPU: 0},                // other tasks, here and on a CPU that is not of the path
		{Time: 1300, Task: 7, Kernel: []uint64{1, 2}, User: []uint64{3}}, // after the window
	} {
		f.addSample(s)
	}
	if got := f.stacks.Weights; len(got) != 2 || got[0][0] != 300 || got[1][0] != 700 {
		t.Errorf("samples of 300 and 700 weigh %v", got)
	}
	if got := f.stacks; got.Samples() != 2 || len(got.Counts) != 2 || got.Foreign != 1 || got.Cut != 1 {
		t.Errorf("%+v", got)
	}
}

// TestIsMeter: the program that follows packets and what calls it are the meter, what a packet does next is not.
func TestIsMeter(t *testing.T) {
	for stack, want := range map[string]bool{
		"__netif_receive_skb_core.constprop.0;bpf_trace_run1;__rcu_read_lock":                                                true,
		"__netif_receive_skb_core.constprop.0;bpf_trace_run1;bpf_prog_0011223344556677_cnibench_space":                       true,
		"__netif_receive_skb_core.constprop.0;__bpf_trace_net_dev_template":                                                  true,
		"__netif_receive_skb_core.constprop.0;br_handle_frame":                                                               false,
		"__netif_receive_skb_core.constprop.0;sch_handle_ingress;tcx_run;bpf_prog_0011223344556677_from_netdev;bpf_redirect": false,
	} {
		if got := isMeter(strings.Split(stack, ";")); got != want {
			t.Errorf("%s: %v", stack, got)
		}
	}
}

// TestOthersAreNamed: a foreign sample has the name of its task, that of an idle CPU has none.
func TestOthersAreNamed(t *testing.T) {
	f := folder{Window: Window{Slices: []sample.Interval{{EndNs: 100}}, Kernel: true}, stacks: &sample.Stacks{}}
	own := proc.Text("/proc/self/comm")
	for _, task := range []int{os.Getpid(), os.Getpid(), 0, -1, 1 << 22} {
		f.addSample(perf.Sample{Time: 50, Task: task})
	}
	want := map[string]uint64{own: 2, sample.Ended: 1}
	if f.stacks.Foreign != 5 || !maps.Equal(f.stacks.Others, want) {
		t.Errorf("%d, %v, want %v", f.stacks.Foreign, f.stacks.Others, want)
	}
	var joined sample.Stacks
	joined.Join(f.stacks, nil)
	joined.Join(f.stacks, nil)
	if joined.Others[own] != 4 {
		t.Errorf("two nodes: %v", joined.Others)
	}
}
