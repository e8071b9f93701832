package netperf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// table is the head of a table whose rows are one run each. titles are the column titles of -o. stack are the lines with the
// titles of -O, words is the number of words in a row below.
type table struct {
	titles []string
	stack  []string
	words  int
}

// nextRun returns the run that follows r, with the banner and head of r, since it may be another row of the same table. A new
// banner or head replaces them.
func nextRun(r *netperfRun) *netperfRun {
	next := &netperfRun{keys: map[string]string{}}
	if r.table.titles == nil && r.table.stack == nil && len(r.rows) == 0 {
		return next
	}
	next.banner, next.burst, next.settings, next.head, next.below = r.banner, r.burst, r.settings, r.head, true
	next.titles, next.above = r.table.titles, slices.Clone(r.table.stack)
	return next
}

var numberFirst = pattern.New(`^ *[0-9.]+( |$)`)

// isFurtherRow reports whether line is another row of the table whose row r has read.
func (r *netperfRun) isFurtherRow(line string) bool {
	words := strings.Fields(line)
	switch {
	case r.table.titles != nil:
		return strings.Count(line, ",") == len(r.table.titles)-1 && !isTitleLine(line)
	case r.table.stack != nil:
		return len(words) == r.table.words && numberFirst.MatchString(line)
	}
	return len(r.rows) > 0 && netperfNumbers.MatchString(line) && len(words) == len(r.rows[0])
}

// bannerSettings returns the settings after the addresses in a banner, such as "demo" and "nodelay", and "family=6" for
// IPv6.
func bannerSettings(line string) []string {
	ends, settings, _ := strings.Cut(line, " : ")
	if strings.HasSuffix(strings.TrimSpace(ends), "AF_INET6") {
		settings = strings.TrimSuffix("family=6 : "+settings, " : ")
	}
	if settings == "" {
		return nil
	}
	return strings.Split(settings, " : ")
}

// defaultSockets are the socket buffer sizes in bytes that a classic table shows without -s and -S; kernels differ.
var defaultSockets = []float64{16384, 87380, 131072, 212992, 124928, 126976, 229376, 65536}

// socketCondition returns the socket buffer sizes of a classic table as a condition, "" if they are defaults or unknown.
func (r *netperfRun) socketCondition() string {
	if len(r.rows) == 0 || len(r.rows[0]) < 2 {
		return ""
	}
	sizes := r.rows[0][:2]
	if r.isUDP() && !strings.HasPrefix(r.banner, "UDP REQUEST") {
		sizes = sizes[:1] // the second is the size of a message
	}
	for _, size := range sizes {
		if !slices.Contains(defaultSockets, size) {
			return "sockets=" + strings.Trim(strings.ReplaceAll(fmt.Sprintf("%.0f", sizes), " ", "/"), "[]")
		}
	}
	return ""
}

// recordConditions records the settings of the test that its workload does not have.
func (r *netperfRun) recordConditions(out *adapter.Reading) {
	for _, s := range r.settings {
		switch s = strings.TrimSpace(s); {
		case s == "" || s == "demo" || s == "histogram" || strings.HasPrefix(s, "first burst"):
		case strings.Contains(s, "conf."):
			out.Warn(adapter.Aggregated, "a mean of netperf's iterations (%s)%s", s, map[bool]string{true: ", which netperf says it did not reach"}[r.unsure])
		case s == "interval":
			out.Warn(adapter.Paced, "netperf sent at intervals: its rate is not a capacity")
			out.Condition(s)
		default:
			out.Condition(s)
		}
	}
	if r.keys["DEST_FAMILY"] == "AF_INET6" || strings.Contains(r.keys["COMMAND_LINE"]+" ", " -6 ") {
		out.Condition("family=6")
	}
	if sizes := r.socketCondition(); sizes != "" {
		out.Condition(sizes)
	}
	for key, absent := range map[string][]string{
		"LOCAL_NODELAY": {"0"}, "LOCAL_CORK": {"0"}, "LOCAL_SOCKET_TOS": {"0", "0xffffffff"}, "LOCAL_SOCKET_PRIO": nil, "LOCAL_INTERVAL_USECS": {"0"},
		"LOCAL_CPU_BIND": nil, "REMOTE_CPU_BIND": nil, "LSS_SIZE_REQ": {"0"}, "LSR_SIZE_REQ": {"0"}, "RSS_SIZE_REQ": {"0"}, "RSR_SIZE_REQ": {"0"},
	} {
		if v := r.keys[key]; v != "" && !strings.HasPrefix(v, "-") && !slices.Contains(absent, v) {
			out.Condition(strings.ToLower(key) + "=" + v)
		}
	}
	if r.below {
		out.Warn(adapter.Assumed, "a further row below one head; assumed: the same test")
	}
}
