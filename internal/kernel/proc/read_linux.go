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
	"github.com/cnibench/cnibench/internal/vocab/number"
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
	return 100 // the value on every architecture that Go supports
})

// Stat reads the CPU lines of /proc/stat: the time in ns of each CPU since boot, by its number.
func Stat() (map[int]sample.Time, error) { return parseFile("/proc/stat", parseStat) }

func parseStat(b []byte) (map[int]sample.Time, error) { return ParseStat(b, UserHz()) }

// ThreadWait returns how long the calling thread has waited in a run queue, in ns. The caller must have locked its
// goroutine to the thread.
func ThreadWait() (int64, error) {
	s, err := parseFile("/proc/thread-self/schedstat", ParseSchedstat)
	return s.Waited, err
}

// WaitOf returns how long thread id of this process has waited in a run queue, in ns. It does not include a wait that
// has not ended.
func WaitOf(id int) (int64, error) {
	s, err := parseFile("/proc/self/task/"+strconv.Itoa(id)+"/schedstat", ParseSchedstat)
	return s.Waited, err
}

// MemoryAvailable returns how many bytes the machine has available for programs.
func MemoryAvailable() (uint64, error) { return parseFile("/proc/meminfo", ParseAvailable) }

// Loadavg reads the load averages of 1, 5 and 15 minutes.
func Loadavg() ([3]float64, error) { return parseFile("/proc/loadavg", ParseLoadavg) }

// ReadCPUInfo reads the description of the machine's first CPU.
func ReadCPUInfo() (CPUInfo, error) {
	return parseFile("/proc/cpuinfo", func(b []byte) (CPUInfo, error) { return ParseCPUInfo(b), nil })
}

// Text returns a file's text without surrounding space, "" if it is unreadable.
func Text(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// OnlineCPUs returns the numbers of the machine's CPUs that are online.
func OnlineCPUs() ([]int, error) { return number.ParseCPUs(Text("/sys/devices/system/cpu/online")) }

func parseFile[T any](name string, parse func([]byte) (T, error)) (T, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		var none T
		return none, err
	}
	return parse(b)
}

// Sampler takes snapshots. It remembers the files and processes that take long to find.
type Sampler struct {
	// ksoftirqd has the process id of ksoftirqd by CPU.
	ksoftirqd map[int]int
	// throttle is the file that counts the throttling of this process's CPU limit, "" for none.
	throttle string
	// hot has the files that count the processor's thermal throttling, by CPU.
	hot   map[int][]string
	tasks *tasks
}

// NewSampler returns a Sampler. It searches for ksoftirqd of every CPU. Inside a PID namespace ksoftirqd is not
// visible, and snapshots omit it.
func NewSampler() (*Sampler, error) {
	pids, err := findKsoftirqd("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for ksoftirqd: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Sampler{ksoftirqd: pids, throttle: findThrottleFile(groups), hot: findThermalFiles("/sys/devices/system/cpu"), tasks: newTasks()}, nil
}

// findThermalFiles returns the files that count thermal throttling, by CPU. Many machines, virtual ones among them, have none.
func findThermalFiles(root string) map[int][]string {
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

// hotStops returns how often the CPUs were throttled because of their temperature. It adds errors to failed.
func (s *Sampler) hotStops(cpus []int, failed *[]error) (stops int64) {
	for _, files := range selectEntries(s.hot, cpus) {
		for _, file := range files {
			stops += parseOptionalFile(failed, file, func(b []byte) (int64, error) { return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) })
		}
	}
	return stops
}

// findThrottleFile returns the first of throttleFiles that has throttling counters. It returns "" if none has.
func findThrottleFile(groups []byte) string {
	for _, name := range throttleFiles(groups) {
		if b, err := os.ReadFile(name); err == nil {
			if _, ok := ParseThrottling(b); ok {
				return name
			}
		}
	}
	return ""
}

// Take reads all counters. It reads the counters of CPUs only for cpus; empty cpus means all. It takes about a
// millisecond. A part that this kernel or container does not show is nil. It fails if a file has unknown content.
func (s *Sampler) Take(cpus []int) (Snapshot, error) {
	var failed []error
	// The counters of the CPU account are read first and together. Slow reads of values that do not change come later.
	snap := Snapshot{At: thread.Monotonic()}
	timers := timerList()
	snap.KsoftirqdNs = s.ksoftirqdClocks(cpus)
	clocks, err := s.tasks.processClocks()
	failed = append(failed, err)
	snap.CPUs = selectEntries(parseOptionalFile(&failed, "/proc/stat", parseStat), cpus)
	snap.Tasks = s.tasks.tasksByID(clocks)
	idle, err := ParseIdle(timers, snap.At)
	snap.IdleNs, failed = selectEntries(idle, cpus), append(failed, err)
	if s.throttle != "" {
		snap.ThrottledNs = parseOptionalFile(&failed, s.throttle, func(b []byte) (int64, error) {
			account, _ := ParseThrottling(b)
			return account.StoppedNs, nil
		})
	}
	snap.HotStops = s.hotStops(cpus, &failed)
	snap.Softnet = parseOptionalFile(&failed, "/proc/thread-self/net/softnet_stat", ParseSoftnet)
	snap.Devices = parseOptionalFile(&failed, "/proc/thread-self/net/dev", ParseDev)
	snap.SNMP = parseOptionalFile(&failed, "/proc/thread-self/net/snmp", ParseSNMP)
	extended := parseOptionalFile(&failed, "/proc/thread-self/net/netstat", ParseSNMP)
	if snap.SNMP == nil {
		snap.SNMP = extended
	}
	maps.Copy(snap.SNMP, extended)
	// Sockets of IPv6 are counted apart.
	if six := parseOptionalFile(&failed, "/proc/thread-self/net/snmp6", ParseSNMP6); snap.SNMP != nil {
		snap.SNMP["Udp.RcvbufErrors"] += six["Udp6RcvbufErrors"]
	}
	snap.MemoryBytes = parseOptionalFile(&failed, "/proc/self/statm", func(b []byte) (uint64, error) { return ParseStatm(b, os.Getpagesize()) })
	snap.NodeMemoryUsedBytes = parseOptionalFile(&failed, "/proc/meminfo", ParseMeminfo)
	return snap, errors.Join(failed...)
}

// parseOptionalFile reads one file. It adds an error to failed, unless the file does not exist or this process may not read
// it.
func parseOptionalFile[T any](failed *[]error, name string, parse func([]byte) (T, error)) T {
	v, err := parseFile(name, parse)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		*failed = append(*failed, err)
	}
	return v
}

// ProcessCPU returns the CPU time of all threads of process pid, in ns. It works for kernel threads too.
func ProcessCPU(pid int) (int64, error) { return readClock(int32(^pid<<3 | schedClock)) }

// schedClock is the kind of clock in the low bits of a clock id, below the inverted process id.
const schedClock = 2

func readClock(id int32) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return ts.Nano(), nil
}

// ksoftirqdClocks reads the CPU clock of ksoftirqd of each of cpus, in ns; empty cpus means all.
func (s *Sampler) ksoftirqdClocks(cpus []int) map[int]int64 {
	clocks := map[int]int64{}
	for n, pid := range selectEntries(s.ksoftirqd, cpus) {
		// A CPU that went offline has no ksoftirqd any more.
		if ns, err := ProcessCPU(pid); err == nil {
			clocks[n] = ns
		}
	}
	return clocks
}

// selectEntries returns the entries of m whose keys are in keys. It returns m if keys is empty.
func selectEntries[V any](m map[int]V, keys []int) map[int]V {
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
		// Processes start and end meanwhile; one that has ended was not ksoftirqd.
		comm, err := os.ReadFile(root + "/" + e.Name() + "/comm")
		if err != nil {
			continue
		}
		if n, ok := KsoftirqdCPU(comm); ok && isKernelThread(root+"/"+e.Name()) {
			found[n] = pid
		}
	}
	return found, nil
}

// isKernelThread reports whether the process in dir has no command line, like a kernel thread. Any program may call
// itself ksoftirqd.
func isKernelThread(dir string) bool {
	b, err := os.ReadFile(dir + "/cmdline")
	return err == nil && len(b) == 0
}
