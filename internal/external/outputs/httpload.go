package outputs

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// httpReport is what a load generator for HTTP reports about a run, in one form for all tools. Zero means unknown, except for
// counts.
type httpReport struct {
	tool string
	// about has the start, and the conditions, such as TLS. Its Window is the requested time, not the measured one.
	about adapter.Reading
	// seconds is how long it measured.
	seconds float64
	// threads and connections are the client's.
	threads, connections int
	// usual is the tool's default number of connections.
	usual int
	// body is the mean length of a body in bytes.
	body float64
	// whole means that body includes headers, reconnect that each request has its own connection.
	whole, reconnect bool
	// good and bad count responses with and without success, failed counts requests without a response. failure is the
	// reason of one of them.
	good, bad, failed float64
	failure           string
	// perSecond is the rate of good responses, if the tool prints it with more digits than its seconds.
	perSecond float64
	// paced is the client's rate limit per second.
	paced float64
	// unsaid is true if the client may have had a rate limit that the tool does not print.
	unsaid bool
	// times are members of the family of response times in ns; shares are percentiles in ns by their share in percent.
	times  map[string]float64
	shares map[float64]float64
}

// reading converts the report into a reading. It is a failed trial if the run ended early, or if no request succeeded.
func (p httpReport) reading() adapter.Reading {
	r := p.about
	asked := r.Window
	r.Window = adapter.Seconds(p.seconds)
	r.Workload = p.httpWorkload(&r)
	if p.paced > 0 {
		r.Warn(adapter.Paced, "the client was held to %v requests per second: its request rate is not a capacity", p.paced)
		r.Condition(fmt.Sprintf("rate=%v", p.paced))
	}
	if p.unsaid {
		r.Warn(adapter.Paced, "%s does not say its rate: unless that was 0, its request rate is not a capacity", p.tool)
	}
	rate := p.goodRate()
	switch r.EndedEarly(asked); {
	case r.Failure != nil:
	case p.good+p.bad == 0:
		failure := cmp.Or(p.failure, "no request was answered")
		r.Fail(adapter.FailureKind(failure), failure)
	case p.good == 0:
		r.Fail("status", fmt.Sprintf("none of %.0f responses had a status of success", p.bad))
	default:
		r.Put(metric.Requests, p.good+p.bad)
		r.Put(metric.ErrorRate, (p.bad+p.failed)/(p.good+p.bad+p.failed))
		if rate > 0 {
			r.Put(metric.RequestRate, rate)
		}
		for member, ns := range p.times {
			r.Time(metric.ResponseTime, member, ns)
		}
		for share, ns := range p.shares {
			r.Percentile(metric.ResponseTime, share, ns)
		}
	}
	return r
}

// goodRate returns the rate of good responses.
func (p httpReport) goodRate() float64 {
	if p.perSecond > 0 || p.seconds == 0 {
		return p.perSecond
	}
	return p.good / p.seconds
}

// concurrencyRemark returns a remark if the mean number of concurrent requests (rate times mean time) does not fit the number
// of connections. It returns "" if that number fits or is unknown, or if the client has or may have a rate limit.
func (p httpReport) concurrencyRemark(connections int) string {
	const least, most = 0.5, 1.2
	n := p.goodRate() * p.times["mean"] / 1e9
	if p.paced > 0 || p.unsaid || n == 0 || n > least*float64(connections) && n < most*float64(connections) {
		return ""
	}
	return fmt.Sprintf(" (%.2g requests were under way at a time)", n)
}

// httpWorkload returns the workload http with the settings that the tool reports. It adds a warning to r about settings
// that are assumed.
func (p httpReport) httpWorkload(r *adapter.Reading) plan.Workload {
	s := plan.HTTP{Threads: p.threads}
	if p.reconnect {
		s.Connection = "close"
	}
	var assumed []string
	switch {
	case p.connections > plan.MaxConnections:
		r.Condition(fmt.Sprintf("connections=%d", p.connections))
	case p.connections > 0:
		s.Connections = p.connections
	}
	if s.Connections == 0 {
		s.Connections = cmp.Or(p.usual, plan.DefaultConnections)
		assumed = append(assumed, fmt.Sprintf("%d connections%s", s.Connections, p.concurrencyRemark(s.Connections)))
	}
	if s.Threads == 0 || s.Threads > plan.MaxThreads {
		s.Threads = min(plan.DefaultThreads, cmp.Or(s.Connections, plan.DefaultThreads))
		assumed = append(assumed, fmt.Sprintf("%d threads", s.Threads))
	}
	if p.body >= 1 && p.body <= plan.MaxRequest {
		s.ResponseSize = adapter.ThreeDigits(p.body)
		if p.body == math.Trunc(p.body) {
			s.ResponseSize = int(p.body)
		}
	}
	w := plan.Workload{Spec: s}.Normalize()
	switch {
	case s.ResponseSize == 0:
		assumed = append(assumed, fmt.Sprintf("bodies of %d B", w.Traits().Response))
	case p.whole:
		assumed = append(assumed, fmt.Sprintf("bodies of %d B, headers included", w.Traits().Response))
	}
	if len(assumed) > 0 {
		r.Warn(adapter.Assumed, "%s does not say the whole workload; assumed: %s", p.tool, strings.Join(assumed, ", "))
	}
	return w
}

// countStatuses adds counts of responses by status code. A code that is not a status counts requests without a response.
func (p *httpReport) countStatuses(codes map[string]float64) {
	for code, n := range codes {
		switch c, err := strconv.Atoi(code); {
		case n < 0:
		case err != nil || c < 100:
			p.failed += n
		case c >= 200 && c < 400:
			p.good += n
		default:
			p.bad += n
		}
	}
}

// roundRate returns v rounded to two digits, as users request rates, or 0 if that differs from v by more than the share
// within.
func roundRate(v, within float64) float64 {
	if v <= 0 {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(v))-1)
	asked := math.Round(v/step) * step
	if math.Abs(v/asked-1) > within {
		return 0
	}
	return asked
}

// decodeHTTPDocuments decodes the JSON documents of the tool called name. It fails if a report has no request. read converts a
// document into a report, or returns nil to leave the document out.
func decodeHTTPDocuments[T any](b []byte, name string, read func(T, *adapter.Batch) (*httpReport, error)) (adapter.Batch, error) {
	batch := adapter.Batch{Tool: name}
	err := adapter.Documents(b, func(doc T) error {
		p, err := read(doc, &batch)
		if err == nil && p != nil && p.good+p.bad+p.failed == 0 && p.failure == "" {
			err = fmt.Errorf("it holds no request, or is not of %s", name)
		}
		if err == nil && p != nil {
			p.tool = name
			batch.Readings = append(batch.Readings, p.reading())
		}
		return err
	})
	return batch, err
}
