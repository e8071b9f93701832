package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// clockTicks is the entry of the auxiliary vector that holds USER_HZ.
const clockTicks = 17

// UserHz returns how many ticks /proc/stat counts per second.
var UserHz = sync.OnceValue(func() int64 {
	vector, _ := unix.Auxv()
	for _, entry := range vector {
		if entry[0] == clockTicks && entry[1] > 0 {
			return int64(entry[1])
		}
	}
	return 100 // every architecture that Go runs on has this value
})

// Stat reads the CPU lines of /proc/stat.
func Stat() (map[int]sample.Time, error) { return read("/proc/stat", parseStat) }

func parseStat(b []byte) (map[int]sample.Time, error) { return ParseStat(b, UserHz()) }

// ThreadWait reads how long the calling thread, which the caller has locked, has waited in a run queue, in ns.
func ThreadWait() (int64, error) {
	s, err := read("/proc/thread-self/schedstat", ParseSchedstat)
	return s.Waited, err
}

// WaitOf is ThreadWait of thread id of this process, without a wait that is under way.
func WaitOf(id int) (int64, error) {
	s, err := read("/proc/self/task/"+strconv.Itoa(id)+"/schedstat", ParseSchedstat)
	return s.Waited, err
}

// MemoryAvailable reads how many bytes the machine can still give to programs.
func MemoryAvailable() (uint64, error) { return read("/proc/meminfo", ParseAvailable) }

// Loadavg reads the load averages of 1, 5 and 15 minutes.
func Loadavg() ([3]float64, error) { return read("/proc/loadavg", ParseLoadavg) }

// ReadCPUInfo reads what the first CPU is.
func ReadCPUInfo() (CPUInfo, error) {
	return read("/proc/cpuinfo", func(b []byte) (CPUInfo, error) { return ParseCPUInfo(b), nil })
}

// Text returns a file's text without the space around it, "" if it cannot be read.
func Text(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func read[T any](name string, parse func([]byte) (T, error)) (T, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		var none T
		return none, err
	}
	return parse(b)
}

// Sampler takes snapshots. It remembers which processes are ksoftirqd, which costs a walk over all processes once, and
// where the account of this process's limit of CPU time is, "" if nowhere. hot are the processor's counts of slow-downs for heat.
type Sampler struct {
	ksoftirqd map[int]int
	throttle  string
	hot       map[int][]string
	tasks     *tasks
}

// NewSampler looks for ksoftirqd of every CPU. Inside a pid namespace it is not visible, and snapshots omit it.
func NewSampler() (*Sampler, error) {
	pids, err := findKsoftirqd("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for ksoftirqd: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Sampler{ksoftirqd: pids, throttle: findThrottle(groups), hot: findHot("/sys/devices/system/cpu"), tasks: newTasks()}, nil
}

// findHot returns the files that count how often a processor slowed a CPU down because it was hot, by CPU. Many machines, virtual ones
// among them, have none.
func findHot(root string) map[int][]string {
	files, _ := filepath.Glob(root + "/cpu[0-9]*/thermal_throttle/*_throttle_count") // fails for a bad pattern only
	found := map[int][]string{}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "cpu")); err == nil {
			found[n] = append(found[n], file)
		}
	}
	return found
}

// hotStops sums the counts of the CPUs.
func (s *Sampler) hotStops(cpus []int, failed *[]error) (stops int64) {
	for _, files := range only(s.hot, cpus) {
		for _, file := range files {
			stops += part(failed, file, func(b []byte) (int64, error) { return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) })
		}
	}
	return stops
}

// findThrottle returns the first of throttleFiles that has an account.
func findThrottle(groups []byte) string {
	for _, name := range throttleFiles(groups) {
		if b, err := os.ReadFile(name); err == nil {
			if _, ok := ParseThrottling(b); ok {
				return name
			}
		}
	}
	return ""
}

// Take reads all counters, those of CPUs for the ones given only (empty: all). It takes about a millisecond. A
// part that this kernel or container does not show is nil; an error means a file that is there and cannot be
// understood.
func (s *Sampler) Take(cpus []int) (Snapshot, error) {
	var failed []error
	// What the account of the CPUs is made of comes first and together. What takes time and does not change comes later.
	snap := Snapshot{At: thread.Monotonic()}
	timers := timerList()
	snap.KsoftirqdNs = s.clocks(cpus)
	clocks, err := s.tasks.clocks()
	failed = append(failed, err)
	snap.CPUs = only(part(&failed, "/proc/stat", parseStat), cpus)
	snap.Tasks = s.tasks.named(clocks)
	idle, err := ParseIdle(timers, snap.At)
	snap.IdleNs, failed = only(idle, cpus), append(failed, err)
	if s.throttle != "" {
		snap.ThrottledNs = part(&failed, s.throttle, func(b []byte) (int64, error) {
			account, _ := ParseThrottling(b)
			return account.StoppedNs, nil
		})
	}
	snap.HotStops = s.hotStops(cpus, &failed)
	snap.Softnet = part(&failed, "/proc/thread-self/net/softnet_stat", ParseSoftnet)
	snap.Devices = part(&failed, "/proc/thread-self/net/dev", ParseDev)
	snap.SNMP = part(&failed, "/proc/thread-self/net/snmp", ParseSNMP)
	extended := part(&failed, "/proc/thread-self/net/netstat", ParseSNMP)
	if snap.SNMP == nil {
		snap.SNMP = extended
	}
	maps.Copy(snap.SNMP, extended)
	snap.MemoryBytes = part(&failed, "/proc/self/statm", func(b []byte) (uint64, error) { return ParseStatm(b, os.Getpagesize()) })
	snap.NodeMemoryUsedBytes = part(&failed, "/proc/meminfo", ParseMeminfo)
	return snap, errors.Join(failed...)
}

// part reads one file; what is wrong with it goes to failed, unless it is not there or not to be read by this process.
func part[T any](failed *[]error, name string, parse func([]byte) (T, error)) T {
	v, err := read(name, parse)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		*failed = append(*failed, err)
	}
	return v
}

// ProcessCPU returns the CPU time that process pid has used in all its threads, in ns. Kernel threads have such a clock
// too.
func ProcessCPU(pid int) (int64, error) { return clock(int32(^pid<<3 | schedClock)) }

// schedClock is the kind of clock below a process's inverted and shifted id.
const schedClock = 2

func clock(id int32) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return ts.Nano(), nil
}

// clocks reads the CPU clock of ksoftirqd of each of cpus.
func (s *Sampler) clocks(cpus []int) map[int]int64 {
	clocks := map[int]int64{}
	for n, pid := range only(s.ksoftirqd, cpus) {
		// A CPU that went offline took its ksoftirqd with it.
		if ns, err := ProcessCPU(pid); err == nil {
			clocks[n] = ns
		}
	}
	return clocks
}

// only returns the entries of m whose keys are in keys; all of them if keys is empty.
func only[V any](m map[int]V, keys []int) map[int]V {
	if len(keys) == 0 {
		return m
	}
	some := maps.Clone(m)
	maps.DeleteFunc(some, func(k int, _ V) bool { return !slices.Contains(keys, k) })
	return some
}

// findKsoftirqd returns the process id of ksoftirqd by CPU.
func findKsoftirqd(root string) (map[int]int, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	found := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Processes come and go while we look; one that has gone was not ksoftirqd.
		comm, err := os.ReadFile(root + "/" + e.Name() + "/comm")
		if err != nil {
			continue
		}
		if n, ok := KsoftirqdCPU(comm); ok && kernelThread(root+"/"+e.Name()) {
			found[n] = pid
		}
	}
	return found, nil
}

// kernelThread is true of a process without a command line: any program may call itself ksoftirqd.
func kernelThread(dir string) bool {
	b, err := os.ReadFile(dir + "/cmdline")
	return err == nil && len(b) == 0
}
