package proc

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

func check[T any](t *testing.T, name string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// refuse wants an error that names the file.
func refuse(t *testing.T, file, input string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%q: got %v, want an error that names %s", input, err, file)
	}
}

func TestParseStat(t *testing.T) {
	const in = "cpu  3 0 3 8 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 2 0 0 4\nintr 1 2 3\nctxt 5\n"
	got, err := ParseStat([]byte(in), 100)
	const tick = 10_000_000
	check(t, "two CPUs", got, err, map[int]sample.Time{
		0: {sample.User: 1 * tick, sample.Nice: 2 * tick, sample.System: 3 * tick, sample.Idle: 4 * tick, sample.IOWait: 5 * tick,
			sample.IRQ: 6 * tick, sample.SoftIRQ: 7 * tick, sample.Steal: 8 * tick, sample.Guest: 9 * tick, sample.GuestNice: 10 * tick},
		12: {sample.User: 2 * tick, sample.Nice: 0, sample.System: 0, sample.Idle: 4 * tick},
	})
	// 58 years of a 1024 Hz clock; one column more than is known.
	got, err = ParseStat([]byte("cpu3 1874000000001 0 0 0 0 0 0 0 0 0 7\n"), 1024)
	if err != nil || got[3][sample.User] != 1830078125*1e9+976562 {
		t.Errorf("a long uptime: %v, %v", got, err)
	}
	for _, in := range []string{"", "cpu 1 2 3 4\n", "cpu0 1 2\n", "cpu0 1 2 x 4\n", "cpu0 1 2 -3 4\n", "cpux 1 2 3 4\n", "cpu-1 1 2 3 4\n"} {
		_, err := ParseStat([]byte(in), 100)
		refuse(t, "/proc/stat", in, err)
	}
	_, err = ParseStat([]byte("cpu0 1 2 3 4\n"), 0)
	refuse(t, "/proc/stat", "0 Hz", err)
}

func TestParseSoftnet(t *testing.T) {
	const in = "0000055b 0000000a 00000002 0 0 0 0 0 0 0 0 0 00000000 0 0\n00001241 00000000 00000000 0 0 0 0 0 0 0 0 0 00000003 0 0\n"
	got, err := ParseSoftnet([]byte(in))
	check(t, "numbered", got, err, []Softnet{{CPU: 0, Dropped: 10, Squeezed: 2}, {CPU: 3}})
	got, err = ParseSoftnet([]byte("1 ffffffff 2 0 0 0 0 0 0 0 0\n"))
	check(t, "old kernel", got, err, []Softnet{{CPU: -1, Dropped: math.MaxUint32, Squeezed: 2}})
	for _, in := range []string{"1 2\n", "0 x 0\n", "0 100000000 0\n", "1 2 3 0 0 0 0 0 0 0 0 0 ffffffff\n"} {
		_, err := ParseSoftnet([]byte(in))
		refuse(t, "softnet_stat", in, err)
	}
}

func TestParseSNMP(t *testing.T) {
	const in = "Ip: Forwarding InReceives\nIp: 2 4192\nTcp: MaxConn InSegs\nTcp: -1 18446744073709551615\n\nUdp: InErrors\nUdp: 0\n"
	got, err := ParseSNMP([]byte(in))
	check(t, "three groups", got, err, map[string]int64{
		"Ip.Forwarding": 2, "Ip.InReceives": 4192, "Tcp.MaxConn": -1, "Tcp.InSegs": -1, "Udp.InErrors": 0,
	})
	got, err = ParseSNMP(nil)
	check(t, "nothing", got, err, map[string]int64{})
	for _, in := range []string{"Ip: A\n", "Ip: A\nTcp: 1\n", "Ip: A B\nIp: 1\n", "Ip: A\nIp: x\n", "Ip A\nIp 1\n"} {
		_, err := ParseSNMP([]byte(in))
		refuse(t, "snmp", in, err)
	}
}

func TestParseDev(t *testing.T) {
	const head = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	got, err := ParseDev([]byte(head + "  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"))
	want := map[string]int64{}
	for i, c := range devColumns {
		want["eth0."+c] = int64(i + 1)
	}
	check(t, "glued to the name", got, err, want)
	got, err = ParseDev([]byte(head))
	check(t, "no device", got, err, map[string]int64{})
	got, err = ParseDev([]byte(head + "a:b: 0 0 0 0 0 0 0 0 0 0 0 9 0 0 0 0\n"))
	if err != nil || got["a:b.tx_dropped"] != 9 {
		t.Errorf("a colon in the name: %v, %v", got, err)
	}
	for _, in := range []string{"eth0: 1 2 3\n", "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x\n", ": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"} {
		_, err := ParseDev([]byte(in))
		refuse(t, "/proc/net/dev", in, err)
	}
}

func TestParseSchedstat(t *testing.T) {
	got, err := ParseSchedstat([]byte("1234567890 55 7\n"))
	check(t, "three columns", got, err, Scheduled{Ran: 1234567890, Waited: 55})
	for _, in := range []string{"", "1 2\n", "1 x 2\n", "1 2 3 4\n"} {
		_, err := ParseSchedstat([]byte(in))
		refuse(t, "schedstat", in, err)
	}
}

func TestKsoftirqdCPU(t *testing.T) {
	for comm, want := range map[string]int{"ksoftirqd/0\n": 0, "ksoftirqd/127": 127} {
		if got, ok := KsoftirqdCPU([]byte(comm)); !ok || got != want {
			t.Errorf("%q: %d, %v", comm, got, ok)
		}
	}
	for _, comm := range []string{"ksoftirqd", "ksoftirqd/", "ksoftirqd/x", "ksoftirqd/-1", "xksoftirqd/0", "migration/0"} {
		if got, ok := KsoftirqdCPU([]byte(comm)); ok {
			t.Errorf("%q is ksoftirqd of CPU %d", comm, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	rss, err := ParseStatm([]byte("1000 25 10 5 0 50 0\n"), 4096)
	check(t, "statm", rss, err, 25*4096)
	for _, in := range []string{"", "1000\n", "1000 -1\n", "1 18446744073709551615\n"} {
		_, err := ParseStatm([]byte(in), 4096)
		refuse(t, "statm", in, err)
	}
	used, err := ParseMeminfo([]byte("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\nHugePages_Total: 0\nOdd\n"))
	check(t, "meminfo", used, err, 600<<10)
	for _, in := range []string{"", "MemTotal: 5 kB\n", "MemTotal: 5 kB\nMemAvailable: 6 kB\n", "MemTotal: x kB\nMemAvailable: 6 kB\n"} {
		_, err := ParseMeminfo([]byte(in))
		refuse(t, "meminfo", in, err)
	}
}

func TestParseMachine(t *testing.T) {
	load, err := ParseLoadavg([]byte("2.07 1.59 0.80 2/153 7014\n"))
	check(t, "loadavg", load, err, [3]float64{2.07, 1.59, 0.80})
	for _, in := range []string{"", "1 2\n", "a b c\n", "-1 0 0\n", "NaN 0 0\n", "+Inf 0 0\n"} {
		_, err := ParseLoadavg([]byte(in))
		refuse(t, "loadavg", in, err)
	}
	x86 := "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: other\n"
	check(t, "x86", ParseCPUInfo([]byte(x86)), nil, CPUInfo{Model: "AMD EPYC", Hypervisor: true})
	check(t, "arm", ParseCPUInfo([]byte("processor: 0\nModel : Raspberry Pi 4\nFeatures: hypervisor\n")), nil, CPUInfo{Model: "Raspberry Pi 4"})
	check(t, "nothing", ParseCPUInfo(nil), nil, CPUInfo{})
}

func FuzzParsers(f *testing.F) {
	for _, seed := range []string{
		"cpu0 1 2 3 4 5 6 7 8 9 10\n", "0000055b 00000000 00000000 0 0 0 0 0 0 0 0 0 00000000 0 0\n", "Tcp: A B\nTcp: 1 -1\n",
		"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "1 2 3\n", "MemTotal: 2 kB\nMemAvailable: 1 kB\n", "0.1 0.2 0.3 1/2 3\n",
		"flags : hypervisor\n", "ksoftirqd/0\n", "cpu0 9223372036854775807 0 0 0\n", "\x00:\n: \n",
	} {
		f.Add([]byte(seed), int64(100))
	}
	f.Fuzz(func(t *testing.T, b []byte, hz int64) {
		if cpus, err := ParseStat(b, hz); err == nil && len(cpus) == 0 {
			t.Error("a machine without CPUs")
		}
		if lines, err := ParseSoftnet(b); err == nil {
			for _, l := range lines {
				if l.CPU < -1 {
					t.Errorf("CPU %d", l.CPU)
				}
			}
		}
		if counters, err := ParseSNMP(b); err == nil {
			for name := range counters {
				if !strings.Contains(name, ".") {
					t.Errorf("counter %q of no group", name)
				}
			}
		}
		if counters, err := ParseDev(b); err == nil && len(counters)%len(devColumns) != 0 {
			t.Errorf("%d counters", len(counters))
		}
		if load, err := ParseLoadavg(b); err == nil && !(load[0] >= 0) {
			t.Errorf("load %v", load)
		}
		// These have no property but to come back.
		_, _ = ParseSchedstat(b)
		_, _ = ParseStatm(b, 4096)
		_, _ = ParseMeminfo(b)
		_, _ = KsoftirqdCPU(b)
		_, _ = ParseTaskStat(b, 100)
		_, _ = ParseIdle(b, 1)
		ParseCPUInfo(b)
	})
}
