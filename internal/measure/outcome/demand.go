package outcome

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveDemand derives service demand and its parts. Each side's CPU time is divided by that side's own count of work. The
// kernel's part is time that is charged to no task of either side.
//
// On a kernel that charges softirq work to the interrupted task, the kernel's part is ksoftirqd. On one that accounts
// interrupts separately it is all interrupt time of the path's CPUs, less that of the idle machine; this includes
// ksoftirqd. Without the whole kernel part of such a machine there is no service demand. On both it includes the
// kernel's workers for the path, such as those that encrypt, on any CPU.
func (t *trial) deriveDemand() {
	if t.is.Spin || t.is.Beside || t.is.Names.Races() {
		return // the CPU time of polling, of a thread that waits to send, or of another stream is not part of a transaction
	}
	client, okClient := t.threadDemand(t.client)
	// The client of an open loop polls the clock before it sends, which is not part of the path's cost. A tool sleeps, and
	// so does the process that makes pods.
	okClient = okClient && (!t.is.Open() || t.clientIsTool() || t.is.NewPods())
	server, okServer := t.threadDemand(t.server)
	if t.is.Kernel() && !okServer && !t.is.Names.Given() {
		// The kernel answers an echo and charges the time to the client's send or to ksoftirqd.
		okServer = okClient
	}
	kernel, okKernel := t.kernelDemand()
	t.putMetric(metric.ClientCPU, client, okClient)
	t.putMetric(metric.ServerCPU, server, okServer && server > 0)
	t.putMetric(metric.KernelCPU, kernel, okKernel)
	t.putMetric(metric.ServiceDemand, client+server+kernel, okClient && okServer && (okKernel || !t.c.IRQApart))
}

// workerTime returns the CPU time in ns of the kernel's workers for the path, as side s reports it. It includes its
// CPUs of the path, except those in counted, and CPUs outside the path. ksoftirqd on an outside CPU counts, too, for
// at most the time of the workers there.
func (t *trial) workerTime(s *side, counted map[int]sample.Time) (ns int64) {
	cpus := t.cpusOf(s, counted)
	elsewhere := map[int]int64{}
	for _, task := range s.hostDelta().Tasks {
		_, here := cpus[task.CPU]
		if !task.OfPath() || !here && !t.countsOutside(s, task.CPU) {
			continue
		}
		ns += task.Ns
		if !here {
			elsewhere[task.CPU] += task.Ns
		}
	}
	for _, task := range s.hostDelta().Tasks {
		if strings.HasPrefix(task.Command, "ksoftirqd/") {
			ns += min(task.Ns, elsewhere[task.CPU])
		}
	}
	return ns
}

// countsOutside reports whether side s counts CPU n as one outside the path. If both sides are on one machine, only the
// client counts such CPUs.
func (t *trial) countsOutside(s *side, n int) bool {
	if t.c.Apart {
		_, own := t.cpusOf(s, nil)[n]
		return !own
	}
	_, client := t.cpusOf(t.client, nil)[n]
	_, server := t.cpusOf(t.server, nil)[n]
	return s == t.client && !client && !server
}

// threadDemand returns the CPU time of a side's load threads per unit of its work. It returns false if the
// time or the work is not known.
func (t *trial) threadDemand(s *side) (float64, bool) {
	if s == nil {
		return 0, false
	}
	return sample.Demand(s.CPU.ThreadsNs, s.units())
}

// kernelDemand returns the CPU time per unit of work that is charged to no task of either side. A CPU that both sides report
// is counted once, by the client's counters.
func (t *trial) kernelDemand() (float64, bool) {
	client, ok := t.sideKernelDemand(t.client, nil)
	if !ok {
		return 0, false
	}
	mine := t.sharedCPUs()
	if len(t.cpusOf(t.server, mine)) == 0 {
		return client, true
	}
	server, ok := t.sideKernelDemand(t.server, mine)
	return client + server, ok
}

// sideKernelDemand returns the kernel's part of a side's demand, in ns per unit of its work, without the CPUs in counted. It
// returns false if the part is not complete.
func (t *trial) sideKernelDemand(s *side, counted map[int]sample.Time) (float64, bool) {
	if s == nil || !(s.units() > 0) {
		return 0, false
	}
	var ns int64
	ksoftirqd := s.hostDelta().KsoftirqdNs
	if ksoftirqd != nil {
		ns = *ksoftirqd
	}
	workers := t.workerTime(s, counted)
	if !t.c.IRQApart {
		return float64(ns+workers) / s.units(), ksoftirqd != nil
	}
	time := sample.Sum(t.cpusOf(s, counted))
	ns = max(ns, sample.LessIdle(time.Interrupts(), time.Total(), t.c.IdleInterrupt))
	return float64(ns+workers) / s.units(), time.Total() > 0
}

// cpusOf returns the time of the CPUs of the path that a side reports, without those in counted. Servers of several machines
// have numbers beyond sample.MachineCPUs.
func (t *trial) cpusOf(s *side, counted map[int]sample.Time) map[int]sample.Time {
	cpus := map[int]sample.Time{}
	for n, modes := range s.hostDelta().CPUs {
		_, twice := counted[n]
		if !twice && (len(t.c.CPUs) == 0 || slices.Contains(t.c.CPUs, n%sample.MachineCPUs)) {
			cpus[n] = modes
		}
	}
	return cpus
}

// sharedCPUs returns the CPUs that both sides may share: those of the client, if both sides are on one machine, otherwise nil.
func (t *trial) sharedCPUs() map[int]sample.Time {
	if t.c.Apart {
		return nil
	}
	return t.cpusOf(t.client, nil)
}

// pathCPUs returns the number of CPUs of the path.
func (t *trial) pathCPUs() int {
	return len(t.cpusOf(t.client, nil)) + len(t.cpusOf(t.server, t.sharedCPUs()))
}

// pathTime returns the time of all CPUs of the path, each once.
func (t *trial) pathTime() sample.Time {
	time := sample.Sum(t.cpusOf(t.client, nil))
	for mode, ns := range sample.Sum(t.cpusOf(t.server, t.sharedCPUs())) {
		time[mode] += ns
	}
	return time
}

func (t *trial) deriveUtilization() {
	if t.is.Spin {
		return
	}
	time := t.pathTime()
	busy := sample.LessIdle(time.Busy(), time.Total(), t.c.IdleBusy)
	share, ok := sample.Share(busy, time.Total())
	t.putMetric(metric.CPUUtilization, share, ok)
	share, ok = sample.Share(time.Interrupts(), time.Busy())
	t.putMetric(metric.SoftIRQShare, share, ok)
}
