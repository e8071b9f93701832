package outputs

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
)

func matchFortio(b []byte) bool {
	return adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"DurationHistogram"`)) && bytes.Contains(b, []byte(`"RequestedQPS"`))
}

// fortioDoc is the JSON of fortio load. ActualDuration is in ns, DurationHistogram in s.
type fortioDoc struct {
	fortioOptions
	RunType           string
	Labels            string
	StartTime         time.Time
	RequestedQPS      string
	ActualDuration    float64
	NumThreads        int
	Version           string
	Jitter, Uniform   bool
	NoCatchUp         bool
	DurationHistogram fortioHistogram
	RetCodes          map[string]float64
	Sizes             fortioHistogram
	HeaderSizes       fortioHistogram
}

// fortioOptions are the requested settings. The client is fortio's own unless that is disabled.
type fortioOptions struct {
	URL                     string
	NumConnections          int
	H2, HTTP10              bool
	DisableKeepAlive        bool
	DisableFastClient       bool
	Payload, MethodOverride string
	UnixDomainSocket        string
	ConnReuseRange          []int
	// RequestedDuration may also be "until stop" or "exactly N calls".
	RequestedDuration string
}

type fortioHistogram struct {
	Count, Min, Max, Avg, StdDev float64
	Data                         []struct{ Start, End, Count float64 }
	Percentiles                  []struct{ Percentile, Value float64 }
}

func decodeFortio(b []byte) (adapter.Batch, error) {
	return decodeHTTPDocuments(b, "fortio", func(doc fortioDoc, batch *adapter.Batch) (*httpReport, error) {
		if doc.Version != "" {
			batch.Tool = "fortio " + doc.Version
		}
		if doc.RunType != "" && doc.RunType != "HTTP" {
			batch.LeaveOut("a run of type %s: not a supported workload", adapter.Quoted(doc.RunType))
			return nil, nil
		}
		h := doc.DurationHistogram
		p := &httpReport{
			about: adapter.Reading{Started: doc.StartTime.UTC()}, seconds: doc.ActualDuration / 1e9,
			threads: doc.NumThreads, connections: doc.NumThreads * max(doc.NumConnections, 1), reconnect: doc.DisableKeepAlive,
			body: doc.Sizes.Avg - doc.HeaderSizes.Avg, whole: doc.HeaderSizes.Count == 0,
			times: map[string]float64{"min": h.Min * 1e9, "mean": h.Avg * 1e9, "max": h.Max * 1e9, "stddev": h.StdDev * 1e9},
		}
		p.about.URL(doc.URL)
		p.countStatuses(doc.RetCodes)
		if doc.RequestedQPS != "max" && doc.RequestedQPS != "" {
			rate, err := strconv.ParseFloat(doc.RequestedQPS, 64)
			if err != nil || rate < 0 {
				return nil, fmt.Errorf("RequestedQPS %s is not a rate", adapter.Quoted(doc.RequestedQPS))
			}
			p.paced = rate
		}
		p.about.Window, _ = time.ParseDuration(doc.RequestedDuration)
		if p.paced > 0 { // the last request is sent by as much before the end
			p.about.Window -= adapter.Seconds(float64(doc.NumThreads) / p.paced)
		}
		for name, set := range map[string]bool{"jitter": doc.Jitter, "uniform": doc.Uniform, "nocatchup": doc.NoCatchUp, "h2": doc.H2, "http10": doc.HTTP10,
			"std-client": doc.DisableFastClient, "unix-socket": doc.UnixDomainSocket != ""} {
			if set {
				p.about.Condition(name + "=true")
			}
		}
		if n := len(doc.Payload); n > 0 {
			p.about.Condition(fmt.Sprintf("payload=%d", n))
		}
		// Without -labels, the label has the URL and the host of the client.
		if label := adapter.Heading(doc.Labels); label != "" && !strings.Contains(doc.Labels, " , ") && !strings.Contains(doc.URL, doc.Labels) {
			p.about.Condition("labels=" + label)
		}
		if len(doc.ConnReuseRange) > 0 && slices.Max(doc.ConnReuseRange) > 0 {
			p.about.Condition(strings.ReplaceAll(fmt.Sprintf("connection-reuse=%d", doc.ConnReuseRange), " ", "-"))
		}
		if doc.MethodOverride != "" {
			p.about.Condition("method=" + doc.MethodOverride)
		}
		p.shares = h.crediblePercentiles(batch)
		return p, nil
	})
}

// Bounds on interpolated percentiles. A percentile is dropped if both are true: the end of its bucket is more than widest
// times the start of that bucket, and the mean of all buckets differs from the printed mean by more than a factor of
// contradicts.
const (
	widest      = 2
	contradicts = 1.5
)

// crediblePercentiles returns percentiles in ns, by their share in percent. fortio interpolates within its buckets, 1 ms
// wide without -r. On a fast network one bucket may hold all times: such percentiles are left out.
func (h fortioHistogram) crediblePercentiles(batch *adapter.Batch) map[float64]float64 {
	shares := map[float64]float64{}
	implied, count := 0.0, 0.0
	for _, d := range h.Data {
		implied, count = implied+d.Count*(d.Start+d.End)/2, count+d.Count
	}
	off := count > 0 && h.Avg > 0 && (implied/count > contradicts*h.Avg || implied/count < h.Avg/contradicts)
	for _, q := range h.Percentiles {
		wide := false
		for _, d := range h.Data {
			wide = wide || q.Value >= d.Start && q.Value <= d.End && d.End > widest*d.Start
		}
		if wide && off {
			batch.LeaveOut("percentiles that fortio interpolated within one bucket, which its own mean contradicts: load with -r 0.00001")
			continue
		}
		shares[q.Percentile] = q.Value * 1e9
	}
	return shares
}
