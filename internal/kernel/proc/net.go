package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ParseSNMP returns the counters of /proc/net/snmp or /proc/net/netstat as "Tcp.RetransSegs". The files have pairs of
// lines, names above values. Some values are gauges (Tcp.CurrEstab) and some negative (Tcp.MaxConn).
func ParseSNMP(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	var names [][]byte
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 0 {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		group, ok := bytes.CutSuffix(names[0], []byte(":"))
		if !ok || !bytes.Equal(names[0], f[0]) || len(names) != len(f) {
			return nil, fmt.Errorf("/proc/net/snmp: the values %q do not fit the names %q", line, names)
		}
		for i := 1; i < len(f); i++ {
			v, err := parseCounter(f[i])
			if err != nil {
				return nil, fmt.Errorf("/proc/net/snmp: %s.%s: %w", group, names[i], err)
			}
			counters[string(group)+"."+string(names[i])] = v
		}
		names = nil
	}
	if names != nil {
		return nil, fmt.Errorf("/proc/net/snmp: the names %q have no values", names)
	}
	return counters, nil
}

// parseCounter parses a number that is signed or uses all 64 bits. Differences are right in both cases.
func parseCounter(b []byte) (int64, error) {
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	return int64(v), err
}

// devColumns are the columns of /proc/net/dev after the device's name.
var devColumns = []string{
	"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast",
	"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo", "tx_collisions", "tx_carrier", "tx_compressed",
}

// ParseDev returns the counters of /proc/net/dev as "eth0.rx_bytes".
func ParseDev(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	for line := range bytes.Lines(b) {
		// A name may contain a colon (an alias), the columns may not; the two heading lines have no colon.
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue
		}
		name := bytes.TrimSpace(line[:colon])
		f := bytes.Fields(line[colon+1:])
		if len(name) == 0 || len(f) != len(devColumns) {
			return nil, fmt.Errorf("/proc/net/dev: %q has %d columns, want %d", line, len(f), len(devColumns))
		}
		for i, s := range f {
			v, err := parseCounter(s)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/dev: %s of %s: %w", devColumns[i], name, err)
			}
			counters[string(name)+"."+devColumns[i]] = v
		}
	}
	return counters, nil
}

// Softnet is a line of /proc/net/softnet_stat: one CPU's receive softirq since boot. The counters are 32 bits wide and
// wrap around; subtract them as such.
type Softnet struct {
	// CPU is -1 on kernels before 5.10, which do not number the lines and leave out CPUs that are offline.
	CPU int
	// Dropped counts packets that a full backlog dropped, Squeezed how often a poll ended with work left.
	Dropped, Squeezed uint32
}

// cpuColumn is the column with the number of the CPU.
const cpuColumn = 12

// ParseSoftnet parses the lines of /proc/net/softnet_stat. It fails if a column is missing or is not a number.
func ParseSoftnet(b []byte) ([]Softnet, error) {
	var lines []Softnet
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 3 {
			return nil, fmt.Errorf("/proc/net/softnet_stat: %q has %d columns", line, len(f))
		}
		s := Softnet{CPU: -1}
		for i, c := range []*uint32{&s.Dropped, &s.Squeezed} {
			v, err := strconv.ParseUint(string(f[i+1]), 16, 32)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/softnet_stat: column %d: %w", i+2, err)
			}
			*c = uint32(v)
		}
		if len(f) > cpuColumn {
			v, err := strconv.ParseUint(string(f[cpuColumn]), 16, 31)
			if err != nil {
				return nil, fmt.Errorf("/proc/net/softnet_stat: CPU number: %w", err)
			}
			s.CPU = int(v)
		}
		lines = append(lines, s)
	}
	return lines, nil
}

// listening has the state of a socket that waits for clients, as in /proc/net/tcp and udp. For tcp it is LISTEN, for
// udp the state of an unconnected socket.
var listening = map[string]string{"tcp": "0A", "udp": "07"}

// Listening reports whether a socket of this network namespace listens on port; transport is "tcp" or "udp".
func Listening(transport string, port int) (bool, error) {
	for _, family := range []string{"", "6"} {
		table, err := os.ReadFile("/proc/thread-self/net/" + transport + family)
		if errors.Is(err, fs.ErrNotExist) && family != "" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return false, err
		}
		if hasListener(string(table), listening[transport], port) {
			return true, nil
		}
	}
	return false, nil
}

// hasListener reports whether table, the text of /proc/net/tcp or udp, has a socket on port in the given state.
func hasListener(table, state string, port int) bool {
	local := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], local) && f[3] == state {
			return true
		}
	}
	return false
}

// ParseSNMP6 returns the counters of /proc/net/snmp6, which has one name and number on each line.
func ParseSNMP6(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 2 {
			return nil, fmt.Errorf("%q has %d columns, want 2", line, len(f))
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, err
		}
		counters[f[0]] = n
	}
	return counters, nil
}
