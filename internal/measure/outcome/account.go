package outcome

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// account attributes the busy time of the path's CPUs: to the service demand, to other tasks, to no task. All values
// are numbers of CPUs: CPU time divided by the length of its own window, because the windows of load threads and of the
// machine's counters begin and end at different moments.
type account struct {
	// cpus is the number of CPUs of the path, busy the number that were not idle.
	cpus, busy float64
	// load is the use by load threads, meter the use by all other threads of the agents.
	load, meter float64
	// kernel is the kernel's use for the path in its own tasks and, if they are accounted separately, in interrupts.
	kernel float64
	// others are the other tasks that ran there, the longest first. Those with atLarge come last.
	others []other
	// blur is how many CPUs the sum may be wrong by: the resolution of clocks, the difference between both kinds of
	// window, and stolen time.
	blur float64
}

// other sums the use, in CPUs, of all tasks of one name that do not belong to the path. atLarge means that they may
// have run on other CPUs.
type other struct {
	command string
	cpus    float64
	atLarge bool
}

// tick is the resolution of the CPU time of /proc/stat in ns.
const tick = 10_000_000

// cpuAccount returns the account of the path's CPUs, false if the machine's counters do not allow one.
func (t *trial) cpuAccount() (a account, ok bool) {
	var steal float64
	for _, x := range []struct {
		s       *side
		counted map[int]sample.Time
	}{{t.client, nil}, {t.server, t.sharedCPUs()}} {
		if x.s == nil && t.client != nil && t.client.Job != nil && len(t.client.Job.Elsewhere) == 0 {
			continue
		}
		if x.s == nil || x.s.CPU.ProcessNs <= 0 {
			return a, false
		}
		a.load += float64(x.s.CPU.ThreadsNs) / float64(x.s.ElapsedNs)
		a.meter += float64(x.s.CPU.ProcessNs-x.s.CPU.ThreadsNs) / float64(x.s.ElapsedNs)
		cpus := t.cpusOf(x.s, x.counted)
		if len(cpus) == 0 {
			continue
		}
		h := x.s.hostDelta()
		if h.SpanNs <= 0 {
			return a, false
		}
		steal += float64(sample.Sum(cpus)[sample.Steal]) / float64(h.SpanNs)
		a.blur += math.Abs(float64(x.s.ElapsedNs-h.SpanNs)) / float64(h.SpanNs)
		a.addMachine(t, h, cpus, x.s == t.client || t.c.Apart)
	}
	a.blur += steal // whether clocks of tasks include it depends on the kernel
	slices.SortStableFunc(a.others, func(x, y other) int {
		if x.atLarge != y.atLarge {
			return map[bool]int{true: 1, false: -1}[x.atLarge]
		}
		return cmp.Compare(y.cpus, x.cpus)
	})
	return a, a.cpus > 0
}

// addMachine adds the CPUs of one machine. large means that it also adds tasks whose CPU is unknown.
func (a *account) addMachine(t *trial, h sample.HostDelta, cpus map[int]sample.Time, large bool) {
	span := float64(h.SpanNs)
	for n, modes := range cpus {
		idle, exact := h.IdleNs[n]
		if !exact {
			idle = modes[sample.Idle] + modes[sample.IOWait]
			a.blur += tick / span
			a.busy -= t.c.IdleBusy
		}
		a.cpus++
		a.busy += 1 - float64(idle)/span
	}
	if t.c.IRQApart { // all of them: the path's own cannot be separated
		a.kernel += float64(sample.Sum(cpus).Interrupts()) / span
		a.blur += tick / span * float64(len(cpus))
	} else if h.KsoftirqdNs != nil {
		a.kernel += float64(*h.KsoftirqdNs) / span
	}
	for _, task := range h.Tasks {
		_, here := cpus[task.CPU]
		switch share := float64(task.Ns) / span; {
		case here && task.OfPath():
			a.kernel += share
		case here:
			a.addOther(other{task.Command, share, false})
		case large && task.CPU < 0:
			a.addOther(other{task.Command, share, true})
		}
	}
}

// addOther adds o to the entry for its name and atLarge, or as a new entry.
func (a *account) addOther(o other) {
	i := slices.IndexFunc(a.others, func(x other) bool { return x.command == o.command && x.atLarge == o.atLarge })
	if i < 0 {
		a.others = append(a.others, o)
		return
	}
	a.others[i].cpus += o.cpus
}

// missingCPUs returns the busy time, in CPUs, that is neither the path's nor the agents'. It is negative if the service
// demand counts more time than the CPUs were busy.
func (a account) missingCPUs() float64 {
	rest := a.busy - a.load - a.kernel
	if rest > 0 {
		return max(0, rest-a.meter)
	}
	return rest
}

// tolerance returns how many CPUs may be missing: a share of the path's CPUs, and the blur.
func (a account) tolerance(share float64) float64 { return share*a.cpus + a.blur }

// describeMissing lists up to three tasks that used the missing time, each with its share of the path's CPUs. If no
// task explains a large rest, it adds that rest.
func (a account) describeMissing(missing float64) string {
	var names []string
	rest := missing
	for _, o := range a.others {
		took := min(o.cpus, rest)
		if len(names) == 3 || took < 0.001*a.cpus {
			break
		}
		rest -= took
		names = append(names, fmt.Sprintf("%s %s", number.Clean(o.command), number.Percent(took/a.cpus)))
	}
	if rest > a.tolerance(unaccounted) {
		names = append(names, number.Percent(rest/a.cpus)+" in no task that is still there")
	}
	return strings.Join(names, ", ")
}

// otherTaskCPUs returns the use of the other tasks in CPUs.
func (a account) otherTaskCPUs() (sum float64) {
	for _, o := range a.others {
		sum += o.cpus
	}
	return sum
}

// describeOtherLoad describes busy time of the path's CPUs that is neither the path's nor the agents', and the tasks that used
// it. It also describes the opposite: the service demand counts more time than these CPUs were busy.
func (t *trial) describeOtherLoad() string {
	a, ok := t.cpuAccount()
	if !ok {
		return ""
	}
	share := unaccounted
	if len(t.c.CPUs) == 0 || t.is.NewPods() { // the kernel creates and removes the namespaces of pods in its own tasks
		share = strange
	}
	missing := a.missingCPUs()
	if interrupts := missing - a.otherTaskCPUs(); t.idleInterruptReason() != "" && interrupts > 0 {
		missing -= interrupts // describeIdleSoftIRQ reports them
	}
	switch {
	case missing > a.tolerance(share):
		return evidenceIf(true, "other work took %s of the time of the path's CPUs: %s", number.Percent(missing/a.cpus), a.describeMissing(missing))
	case -missing > a.tolerance(share):
		return evidenceIf(true, "load threads and the kernel's work for them have %s more time than the path's CPUs were busy", number.Percent(math.Abs(missing)/a.cpus))
	}
	return ""
}
