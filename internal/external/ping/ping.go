package ping

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	pingHead  = pattern.New(`(?m)^PING \S+ .*?(\d+)(?:\(\d+\) bytes of data\.?| data bytes)`)
	pingReply = pattern.New(`^\d+ bytes from .* time[=<](\S+) ms(?: \(DUP!\))?$`)
	pingTotal = pattern.New(`^(\d+) packets transmitted, (\d+) (?:packets )?received,(.*)$`)
	pingTimes = pattern.New(`^(?:rtt|round-trip) (min/avg/max(?:/(?:mdev|stddev))?) = ([0-9.,/]+) ms`)
	pingSix   = pattern.New(`\(([0-9a-f]*:[0-9a-f:.]*)(?:%\w+)?\)`)
	pingTook  = pattern.New(`time (\d+) ?ms`)
	// pingFault matches an error of the kernel or a router in place of an answer.
	pingFault = pattern.New(`^(?:From .*icmp_seq=\d+ |ping: )(.+)$`)
)

func match(b []byte) bool {
	return pingHead.Match(b[:min(len(b), 4096)]) || strings.HasPrefix(string(b), "ping: ")
}

// pingRun is one run within the text.
type pingRun struct {
	headed         bool
	payload        int
	times          []float64
	sent, received float64
	took           time.Duration
	totals         bool
	flood          bool
	host           string
	summary        adapter.Reading
	// failure is why nothing was sent, fault the latest error in place of an answer.
	failure, fault string
}

// text decodes the output of ping of iputils, BusyBox and BSD. An error without a head is a separate run.
var text = adapter.RunText[*pingRun]{Tool: "ping", New: func() *pingRun { return &pingRun{} }, Begins: func(run *pingRun, line string) bool {
	return pingHead.MatchString(line) || !strings.HasPrefix(line, "ping: sock4.fd:") && !run.headed && strings.HasPrefix(line, "ping: ")
}}

// Take reads one line.
func (p *pingRun) Take(_ *adapter.Batch, line string) error {
	if m := pingHead.FindStringSubmatch(line); m != nil {
		var err error
		p.headed = true
		p.payload, err = adapter.Count(m[1])
		if six := pingSix.FindStringSubmatch(line); six != nil {
			p.host = six[1]
		}
		return err
	}
	if strings.HasPrefix(line, "ping: sock4.fd:") {
		return nil // output of -v about its sockets
	}
	if message, ok := strings.CutPrefix(line, "ping: "); ok && !p.headed {
		p.failure = message
		return nil
	}
	if m := pingFault.FindStringSubmatch(line); m != nil {
		p.fault = m[1]
	}
	if m := pingReply.FindStringSubmatch(line); m != nil {
		ms, err := adapter.Amount(m[1])
		p.times = append(p.times, ms*1e6)
		return err
	}
	if m := pingTotal.FindStringSubmatch(line); m != nil {
		p.totals = true
		if t := pingTook.FindStringSubmatch(m[3]); t != nil {
			if ms, err := adapter.Amount(t[1]); err == nil {
				p.took = adapter.Seconds(ms / 1e3)
			}
		}
		return adapter.Amounts(m[1:], &p.sent, &p.received)
	}
	if m := pingTimes.FindStringSubmatch(line); m != nil {
		p.flood = strings.Contains(line, "ipg/ewma") // send when the answer has arrived: -f and -A
		names, values := strings.Split(m[1], "/"), strings.Split(m[2], "/")
		if len(names) != len(values) {
			return fmt.Errorf("%d times where %s are %d", len(values), m[1], len(names))
		}
		for i, name := range names {
			ms, err := adapter.Amount(values[i])
			if err != nil {
				return err
			}
			member := cmp.Or(map[string]string{"min": "min", "avg": "mean", "max": "max"}[name], "stddev")
			p.summary.Time(metric.RTT, member, ms*1e6)
		}
	}
	return nil
}

// End returns the reading of the run.
func (p *pingRun) End(*adapter.Batch) (*adapter.Reading, error) {
	r := &adapter.Reading{}
	r.Host(p.host)
	if p.failure != "" {
		r.Fail(adapter.FailureKind(p.failure), p.failure)
		return r, nil
	}
	r.Workload = plan.Workload{Spec: plan.Ping{MessageSize: p.payload, Interval: p.interval()}}.Normalize()
	if err := r.Workload.Validate(); err != nil {
		return r, err
	}
	r.Window = p.took
	switch {
	case !p.totals:
		return r, errors.New("it ends before its statistics: the output is cut off")
	case p.sent == 0:
		r.Fail("error", "nothing was sent")
	case p.received == 0 && p.fault != "":
		r.Fail(adapter.FailureKind(p.fault), fmt.Sprintf("none of %.0f echoes was answered: %s", p.sent, p.fault))
	case p.received == 0:
		r.Fail("timeout", fmt.Sprintf("none of %.0f echoes was answered", p.sent))
	default:
		r.Work = p.received
		// The replies give percentiles if all are printed. The summary line sometimes has one digit more.
		if float64(len(p.times)) == p.received {
			r.Distribution(metric.RTT, p.times)
		}
		for name, v := range p.summary.Metrics {
			r.Put(name, v)
		}
		r.Warn(adapter.Rounded, "ping's times have steps of 1 µs")
		r.Put(metric.ErrorRate, max(0, 1-p.received/p.sent))
		if r.Workload.Traits().Interval > 0 {
			r.Warn(adapter.Assumed, "ping does not print its interval; assumed: %s", r.Workload.Traits().Interval)
		}
	}
	return r, nil
}

// interval returns the time between echoes, at most a minute, computed from the total time and rounded to one digit. It
// returns 0 for a flood, and for fewer than two echoes if the total time is known. It returns ping's default of 1 s if the
// total time is missing or 0, as from BusyBox.
func (p *pingRun) interval() time.Duration {
	if p.flood || p.took > 0 && p.sent < 2 {
		return 0
	}
	if p.took == 0 {
		return time.Second
	}
	each := float64(p.took) / (p.sent - 1)
	if each < 1e6 {
		return 0 // no slower than the replies: a flood
	}
	digit := math.Pow(10, math.Floor(math.Log10(each)))
	return min(time.Duration(math.Round(each/digit)*digit), time.Minute)
}
