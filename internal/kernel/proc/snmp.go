package proc

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseSNMP returns the counters of /proc/net/snmp or /proc/net/netstat as "Tcp.RetransSegs". The files come in pairs
// of lines, names above values. Some values are gauges (Tcp.CurrEstab) and some negative (Tcp.MaxConn).
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

// parseCounter reads a number that is signed or uses all 64 bits. Differences come out right either way.
func parseCounter(b []byte) (int64, error) {
	if v, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	return int64(v), err
}
