package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/measure/cpu"
)

// clockTicks is the entry of the auxiliary vector that holds USER_HZ.
const clockTicks = 17

// UserHz returns how many ticks /proc/stat counts per second.
var UserHz = sync.OnceValue(func() int64 {
	vector, err := unix.Auxv()
	if err == nil {
		for _, entry := range vector {
			if entry[0] == clockTicks && entry[1] > 0 {
				return int64(entry[1])
			}
		}
	}
	// Every architecture that Go runs on has this value.
	return 100
})

// Stat reads the CPU lines of /proc/stat.
func Stat() (map[int]cpu.Time, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	return ParseStat(b, UserHz())
}

// ThreadSched reads the scheduler's account of the calling thread, which the caller has locked.
func ThreadSched() (Sched, error) {
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return Sched{}, err
	}
	return ParseSchedstat(b)
}

// Loadavg reads the load averages of 1, 5 and 15 minutes.
func Loadavg() ([3]float64, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return [3]float64{}, err
	}
	return ParseLoadavg(b)
}

// ReadCPUInfo reads what the first CPU is.
func ReadCPUInfo() (CPUInfo, error) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return CPUInfo{}, err
	}
	return ParseCPUInfo(b), nil
}

// Sampler takes snapshots. It remembers which processes are ksoftirqd, which costs a walk over all processes once, and
// where the account of this process's limit of CPU time is, "" if nowhere.
type Sampler struct {
	ksoftirqd map[int]int
	throttle  string
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
	return &Sampler{ksoftirqd: pids, throttle: findThrottle(groups)}, nil
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

// Take reads all counters, those of CPUs for the ones given only (empty: all). It takes a few hundred microseconds. A
// part that this kernel or container does not show is nil; an error means a file that is there and cannot be understood.
func (s *Sampler) Take(cpus []int) (Snapshot, error) {
	var snap Snapshot
	var failed []error
	read := func(name string, parse func([]byte) error) {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return
		}
		if err == nil {
			err = parse(b)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	snap.KsoftirqdNs = s.clocks(cpus)
	if s.throttle != "" {
		read(s.throttle, func(b []byte) error {
			account, _ := ParseThrottling(b)
			snap.ThrottledNs = account.StoppedNs
			return nil
		})
	}
	read("/proc/stat", func(b []byte) (err error) {
		snap.CPUs, err = ParseStat(b, UserHz())
		snap.CPUs = only(snap.CPUs, cpus)
		return err
	})
	read("/proc/thread-self/net/softnet_stat", func(b []byte) (err error) {
		snap.Softnet, err = ParseSoftnet(b)
		return err
	})
	read("/proc/thread-self/net/dev", func(b []byte) (err error) {
		snap.Devices, err = ParseDev(b)
		return err
	})
	for _, name := range []string{"snmp", "netstat"} {
		read("/proc/thread-self/net/"+name, func(b []byte) error {
			counters, err := ParseSNMP(b)
			if snap.SNMP == nil {
				snap.SNMP = counters
			}
			for n, v := range counters {
				snap.SNMP[n] = v
			}
			return err
		})
	}
	read("/proc/self/statm", func(b []byte) (err error) {
		snap.MemoryBytes, err = ParseStatm(b, os.Getpagesize())
		return err
	})
	read("/proc/meminfo", func(b []byte) (err error) {
		snap.NodeMemoryUsedBytes, err = ParseMeminfo(b)
		return err
	})
	return snap, errors.Join(failed...)
}

// clocks reads the CPU clock of ksoftirqd of each of cpus.
func (s *Sampler) clocks(cpus []int) map[int]int64 {
	var clocks map[int]int64
	for n, pid := range only(s.ksoftirqd, cpus) {
		// A CPU that went offline took its ksoftirqd with it.
		if ns, err := ProcessCPU(pid); err == nil {
			if clocks == nil {
				clocks = map[int]int64{}
			}
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
	some := make(map[int]V, len(keys))
	for _, k := range keys {
		if v, ok := m[k]; ok {
			some[k] = v
		}
	}
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
