package sockperf

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func match(b []byte) bool { return bytes.HasPrefix(b, []byte("sockperf")) || sockBegin.Match(b) }

var (
	colours      = pattern.New("\x1b?\\[[0-9;]*m")
	sockBegin    = pattern.New(`(?m)^sockperf: .*== version #`)
	sockVersion  = pattern.New(`version #(\S+)`)
	sockProtocol = pattern.New(`^\[ *\d+\] IP = .* # (TCP|UDP)$`)
	sockValid    = pattern.New(`^\[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+); ReceivedMessages=(\d+)`)
	sockTotal    = pattern.New(`^\[Total Run\].*ReceivedMessages=(\d+)`)
	sockDropped  = pattern.New(`^# dropped messages = (\d+);`)
	sockSpread   = pattern.New(`^====> avg-(latency|rtt|lat)=([\d.]+) \(std-dev=([\d.]+)`)
	sockBurst    = pattern.New(`Latency of burst of (\d+) messages`)
	sockPoint    = pattern.New(`^---> (?:<(MAX|MIN)> observation|percentile ([\d.]+)) += +([\d.]+)$`)
)

// sockRun is one run within the text.
type sockRun struct {
	protocol                        string
	sent, dropped, received, window float64
	// total is the number of answers in the whole run, including those outside the valid duration.
	total float64
	whole bool // times are of the round trip, not half of it
	valid bool
	// failure is why the run failed, other why its test is not a supported workload.
	failure, other string
	// about has conditions: the family of the address, and the number of messages in a burst.
	about adapter.Reading
	// times has the printed times in µs by member of the metric family, such as "mean". shares has the printed
	// percentiles in µs by their share in percent.
	times  map[string]float64
	shares map[float64]float64
}

// idle is the least share of the window with a message under way. Below it, the client sent at a limited rate.
const idle = 0.5

// text decodes the output of sockperf ping-pong.
var text = adapter.RunText[*sockRun]{
	Tool: "sockperf", New: func() *sockRun { return &sockRun{times: map[string]float64{}, shares: map[float64]float64{}} },
	Begins: func(_ *sockRun, line string) bool { return sockVersion.MatchString(line) },
}

// Take reads one line.
func (s *sockRun) Take(batch *adapter.Batch, line string) error {
	line = strings.TrimSpace(colours.ReplaceAllString(line, ""))
	if m := sockVersion.FindStringSubmatch(line); m != nil {
		batch.Tool = "sockperf " + m[1]
	}
	line = strings.TrimPrefix(line, "sockperf: ")
	if m := sockProtocol.FindStringSubmatch(line); m != nil {
		s.protocol = strings.ToLower(m[1])
		host, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line[strings.Index(line, "=")+1:], " ")), " ")
		s.about.Host(host)
		return nil
	}
	if m := sockValid.FindStringSubmatch(line); m != nil {
		s.valid = true
		return adapter.Amounts(m[1:], &s.window, &s.sent, &s.received)
	}
	if m := sockTotal.FindStringSubmatch(line); m != nil {
		return adapter.Amounts(m[1:], &s.total)
	}
	if m := sockDropped.FindStringSubmatch(line); m != nil {
		return adapter.Amounts(m[1:], &s.dropped)
	}
	if m := sockSpread.FindStringSubmatch(line); m != nil {
		var mean, stddev float64
		err := adapter.Amounts(m[2:], &mean, &stddev)
		s.whole, s.times["mean"], s.times["stddev"] = m[1] == "rtt", mean, stddev
		return err
	}
	if m := sockPoint.FindStringSubmatch(line); m != nil {
		var share, v float64
		if m[1] != "" {
			err := adapter.Amounts(m[3:], &v)
			s.times[strings.ToLower(m[1])] = v
			return err
		}
		err := adapter.Amounts(m[2:], &share, &v)
		s.shares[share] = v
		return err
	}
	if m := sockBurst.FindStringSubmatch(line); m != nil {
		s.about.Condition("burst=" + m[1])
	}
	switch {
	case strings.HasPrefix(line, "ERROR: "):
		s.failure = strings.TrimPrefix(line, "ERROR: ")
	case strings.HasPrefix(line, "Summary: Message Rate"), strings.HasPrefix(line, "Summary: BandWidth"):
		s.other = "a throughput test, of which only the sender counts"
	case strings.HasPrefix(line, "No valid observations found"):
		s.failure = "no message was answered in the window that counts"
	case strings.HasSuffix(line, "(interrupted by user)"):
		s.failure = "interrupted by user"
	case strings.HasPrefix(line, "No messages were received"):
		s.failure = "no messages were received from the server"
	}
	return nil
}

// End returns the reading of the run, if its test is a supported workload.
func (s *sockRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	// Under load only some messages request an answer, and its time is an open loop's.
	if s.valid && s.sent > s.received+s.dropped+1 {
		s.other = "an under-load test: its open loop is not a supported workload"
	}
	if s.other != "" {
		batch.LeaveOut("%s", s.other)
		return nil, nil
	}
	r := &adapter.Reading{}
	if s.protocol != "" {
		w := plan.Workload{Spec: plan.RR{Protocol: plan.Protocol(s.protocol), RequestSize: minMessage, ResponseSize: minMessage}}
		if s.protocol == string(plan.UDP) {
			w.Tool = "sockperf" // our engine has no datagrams of this size
		}
		r.Workload = w.Normalize()
	}
	r.Condition(s.about.Conditions...)
	r.Window = adapter.Seconds(s.window)
	if s.failure != "" {
		r.Fail(adapter.FailureKind(s.failure), s.failure)
		return r, nil
	}
	if !s.valid || len(s.times) < 4 {
		return r, errors.New("it ends before its statistics: the output is cut off")
	}
	if s.received == 0 {
		r.Fail("timeout", "no message was answered")
		return r, nil
	}
	scale := 2e3
	if s.whole {
		scale = 1e3
	}
	for member, us := range s.times {
		r.Time(metric.RTT, member, us*scale)
	}
	for share, us := range s.shares {
		if s.received*(1-share/100) >= adapter.Beyond*(1-1e-9) {
			r.Percentile(metric.RTT, share, us*scale)
		}
	}
	if mean := r.Metrics[metric.RTT+".mean"]; s.window > 0 && mean > 0 && s.received*mean/1e9 < idle*s.window {
		r.Warn(adapter.Paced, "the client sent less often than answers came (--mps): its rate is not a capacity")
		r.Condition("rate=" + strconv.Itoa(adapter.TwoDigits(s.received/s.window)))
	}
	r.Work = s.total
	if s.window > 0 {
		r.Put(metric.TransactionRate, s.received/s.window)
	} else {
		batch.LeaveOut("the rate of answers, of which the valid duration is 0 s")
	}
	r.Put(metric.ErrorRate, min(1, s.dropped/max(s.sent, 1)))
	r.Warn(adapter.Assumed, "sockperf does not print its message size; assumed: %d B, its default", minMessage)
	return r, nil
}
