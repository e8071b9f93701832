package probe

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Collection defines which facts Collect measures, and how.
type Collection struct {
	// CPUs are the CPUs of the paths to measure; empty means all that this process may use.
	CPUs []int
	// Idle is how long the load of other processes is measured; 0 means that it is not measured.
	Idle time.Duration
	// Pod is true if the namespace of this process is a pod's, whose loopback it may use: a pod may not make a namespace.
	Pod bool
}

// Collect returns the conditions of a run on this machine. It omits facts that are unknown. Do no other work while it
// measures the idle machine (c.Idle). The environment adds further facts of package facts, such as iptables and lab.*.
func Collect(ctx context.Context, c Collection) (facts.Facts, error) {
	usable, err := thread.CPUs()
	if err != nil {
		return nil, err
	}
	if len(c.CPUs) == 0 {
		c.CPUs = usable
	}
	f := facts.Facts{facts.Architecture: runtime.GOARCH, facts.CPUs: strconv.Itoa(len(usable))}
	set := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			f[name] = value
		}
	}
	// Read the load average before adding to it.
	if load, err := proc.Loadavg(); err == nil {
		set(facts.LoadAverage, fmt.Sprintf("%.2f %.2f %.2f", load[0], load[1], load[2]))
	}
	if c.Idle > 0 {
		idle, err := Idle(ctx, c.CPUs, c.Idle)
		if err != nil {
			return nil, err
		}
		set(facts.IdleBusy, strconv.FormatFloat(idle.Busy, 'f', 4, 64))
		set(facts.IdleInterrupt, strconv.FormatFloat(idle.Interrupt, 'f', 4, 64))
	}
	collectHardware(set)
	for name, file := range map[string]string{
		facts.Governor:     fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", c.CPUs[0]),
		facts.Clocksource:  "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		facts.ConntrackMax: "/proc/sys/net/netfilter/nf_conntrack_max",
		facts.Backlog:      "/proc/sys/net/core/netdev_max_backlog",
		facts.Qdisc:        "/proc/sys/net/core/default_qdisc",
		facts.BPFJIT:       "/proc/sys/net/core/bpf_jit_enable",
	} {
		set(name, proc.Text(file))
	}
	irq, err := IRQTime(ctx, c.CPUs[0], c.Pod)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// Without the right to try, the fact is omitted like any other unknown fact.
	if err == nil {
		set(facts.IRQAccounting, irq)
	}
	return f, nil
}

// collectHardware passes the facts of the kernel and of the hardware to set.
func collectHardware(set func(name, value string)) {
	set(facts.Kernel, kernelRelease())
	// An unreadable file leaves its part of the hints empty.
	info, _ := proc.ReadCPUInfo()
	set(facts.CPUModel, info.Model)
	cmdline := proc.Text("/proc/cmdline")
	set(facts.Virtualization, Virtualization(Hints{
		Hypervisor: info.Hypervisor, X86: runtime.GOARCH == "amd64" || runtime.GOARCH == "386",
		Vendor: proc.Text("/sys/class/dmi/id/sys_vendor"), Product: proc.Text("/sys/class/dmi/id/product_name"),
		Xen: proc.Text("/sys/hypervisor/type"), Clocksource: proc.Text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Cmdline: cmdline,
	}))
	if cmdline != "" {
		mitigations, ok := Parameter(cmdline, "mitigations")
		if !ok {
			mitigations = "auto"
		}
		set(facts.Mitigations, mitigations)
	}
}

// Load has shares (0 to 1) of CPU time: Busy for all work, Interrupt for interrupts, which are part of Busy.
type Load struct{ Busy, Interrupt float64 }

// Idle measures the load of the CPUs for the duration d. The caller must do nothing else meanwhile. It fails if ctx
// ends, or if d is too short.
func Idle(ctx context.Context, cpus []int, d time.Duration) (Load, error) {
	before, err := proc.Stat()
	if err != nil {
		return Load{}, err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return Load{}, ctx.Err()
	}
	after, err := proc.Stat()
	if err != nil {
		return Load{}, err
	}
	passed := sample.Time{}
	for _, n := range cpus {
		for mode, ns := range after[n] {
			passed[mode] += ns - before[n][mode]
		}
	}
	busy, ok := sample.Share(passed.Busy(), passed.Total())
	if !ok {
		return Load{}, fmt.Errorf("measure idle CPUs %v: /proc/stat shows no time passing in %s: measure longer", cpus, d)
	}
	interrupt, _ := sample.Share(passed.Interrupts(), passed.Total())
	return Load{Busy: busy, Interrupt: interrupt}, nil
}
