package proc

import (
	"bytes"
	"fmt"
)

// columns of /proc/net/dev behind the device's name.
var devColumns = []string{
	"rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast",
	"tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_fifo", "tx_collisions", "tx_carrier", "tx_compressed",
}

// ParseDev returns the counters of /proc/net/dev as "eth0.rx_bytes".
func ParseDev(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	for line := range bytes.Lines(b) {
		// A name may contain a colon (an alias), the columns may not; the two lines of headings have no colon at all.
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
