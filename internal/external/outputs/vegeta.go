package outputs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func matchVegeta(b []byte) bool {
	if adapter.StartsJSON(b) {
		return bytes.Contains(b, []byte(`"latencies"`)) && bytes.Contains(b, []byte(`"status_codes"`))
	}
	return vegetaRow.Match(b) && bytes.Contains(b, []byte("Latencies ")) && bytes.Contains(b, []byte("Success "))
}

// vegetaDoc is vegeta report -type json; times are in ns.
type vegetaDoc struct {
	Latencies map[string]float64 `json:"latencies"`
	In        struct {
		Mean float64 `json:"mean"`
	} `json:"bytes_in"`
	Earliest time.Time          `json:"earliest"`
	Duration float64            `json:"duration"`
	Wait     float64            `json:"wait"`
	Requests float64            `json:"requests"`
	Codes    map[string]float64 `json:"status_codes"`
	Errors   []string           `json:"errors"`
}

func decodeVegeta(b []byte) (adapter.Batch, error) {
	if !adapter.StartsJSON(b) {
		return vegetaText.Decode(b)
	}
	return decodeHTTPDocuments(b, "vegeta", func(doc vegetaDoc, batch *adapter.Batch) (*httpReport, error) {
		batch.NoURL("vegeta")
		p := doc.report()
		return &p, nil
	})
}

// report converts doc, read from JSON or text, into a report. It does not use vegeta's rate: an attack of n requests takes
// n-1 intervals.
func (doc vegetaDoc) report() httpReport {
	p := httpReport{tool: "vegeta", about: adapter.Reading{Started: doc.Earliest}, seconds: (doc.Duration + doc.Wait) / 1e9, body: doc.In.Mean, times: map[string]float64{}, shares: map[float64]float64{}}
	p.countStatuses(doc.Codes)
	if len(doc.Errors) > 0 {
		p.failure = doc.Errors[0]
	}
	for _, member := range []string{"min", "mean", "max"} {
		p.times[member] = doc.Latencies[member]
	}
	for share, key := range map[float64]string{50: "50th", 90: "90th", 99: "99th"} {
		p.shares[share] = doc.Latencies[key]
	}
	if doc.Duration > 0 && doc.Requests > 1 {
		p.paced = roundRate((doc.Requests-1)*1e9/doc.Duration, 0.003)
	}
	p.unsaid = p.paced == 0
	return p
}

var (
	vegetaRow  = pattern.New(`(?m)^(Requests|Duration|Latencies|Bytes In|Success|Status Codes) +\[([^\]]*)\] +(.*)$`)
	vegetaCode = pattern.New(`^(\d+):(\d+)$`)
)

// vegetaRun is vegeta report as text, a row for each group of values.
type vegetaRun struct {
	doc      vegetaDoc
	complete bool
	inErrors bool
}

var vegetaText = adapter.RunText[*vegetaRun]{
	Tool: "vegeta",
	New: func() *vegetaRun {
		return &vegetaRun{doc: vegetaDoc{Latencies: map[string]float64{}, Codes: map[string]float64{}}}
	},
	Begins: func(_ *vegetaRun, line string) bool { return strings.HasPrefix(line, "Requests ") },
}

// Take reads one line.
func (v *vegetaRun) Take(_ *adapter.Batch, line string) error {
	m := vegetaRow.FindStringSubmatch(line)
	switch {
	case m == nil && v.inErrors && line != "":
		v.doc.Errors = append(v.doc.Errors, line)
		return nil
	case m == nil:
		v.inErrors = v.inErrors || strings.HasPrefix(line, "Error Set:")
		return nil
	case m[1] == "Status Codes":
		v.complete = true
		for _, word := range strings.Fields(m[3]) {
			if c := vegetaCode.FindStringSubmatch(word); c != nil {
				n, err := adapter.Amount(c[2])
				if err != nil {
					return err
				}
				v.doc.Codes[c[1]] = n
			}
		}
		return nil
	}
	names, values := strings.Split(m[2], ", "), strings.Split(m[3], ", ")
	if len(names) != len(values) {
		return fmt.Errorf("%d values of %d names", len(values), len(names))
	}
	for i, name := range names {
		if err := v.readValue(m[1], name, strings.TrimSpace(values[i])); err != nil {
			return err
		}
	}
	return nil
}

// readValue reads one value of a row.
func (v *vegetaRun) readValue(row, name, text string) (err error) {
	switch {
	case row == "Requests" && name == "total":
		v.doc.Requests, err = adapter.Amount(text)
	case row == "Bytes In" && name == "mean":
		v.doc.In.Mean, err = adapter.Amount(text)
	case row == "Duration" && name == "attack", row == "Duration" && name == "wait", row == "Latencies":
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%s is not a time", adapter.Quoted(text))
		}
		switch name {
		case "attack":
			v.doc.Duration = float64(d)
		case "wait":
			v.doc.Wait = float64(d)
		case "min", "mean", "max":
			v.doc.Latencies[name] = float64(d)
		default:
			v.doc.Latencies[name+"th"] = float64(d)
		}
	}
	return err
}

// End returns the reading of the run.
func (v *vegetaRun) End(batch *adapter.Batch) (*adapter.Reading, error) {
	if !v.complete {
		return nil, errors.New("it ends before its status codes: the output is cut off")
	}
	batch.NoURL("vegeta")
	r := v.doc.report().reading()
	return &r, nil
}

// ohaDoc is the JSON of oha; times are in s.
type ohaDoc struct {
	Summary struct {
		SuccessRate float64 `json:"successRate"`
		Total       float64 `json:"total"`
		Slowest     float64 `json:"slowest"`
		Fastest     float64 `json:"fastest"`
		Average     float64 `json:"average"`
		PerSecond   float64 `json:"requestsPerSec"`
		Size        float64 `json:"sizePerRequest"`
	} `json:"summary"`
	Percentiles map[string]*float64 `json:"latencyPercentiles"`
	Codes       map[string]float64  `json:"statusCodeDistribution"`
	Errors      map[string]float64  `json:"errorDistribution"`
}

func matchOha(b []byte) bool {
	return adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"requestsPerSec"`)) && bytes.Contains(b, []byte(`"latencyPercentiles"`))
}

// atDeadline is oha's name for requests that were under way when its time was over. They are not failures.
const atDeadline = "aborted due to deadline"

func decodeOha(b []byte) (adapter.Batch, error) {
	return decodeHTTPDocuments(b, "oha", func(doc ohaDoc, batch *adapter.Batch) (*httpReport, error) {
		batch.NoURL("oha")
		s := doc.Summary
		p := &httpReport{seconds: s.Total, body: s.Size, usual: 50, times: map[string]float64{"min": s.Fastest * 1e9, "mean": s.Average * 1e9, "max": s.Slowest * 1e9}, shares: map[float64]float64{}}
		p.countStatuses(doc.Codes)
		for message, n := range doc.Errors {
			if message != atDeadline && n > 0 {
				p.failed, p.failure = p.failed+n, max(p.failure, message)
			}
		}
		for key, v := range doc.Percentiles {
			if share, err := adapter.Amount(strings.TrimPrefix(key, "p")); err == nil && v != nil {
				p.shares[share] = *v * 1e9
			}
		}
		return p, nil
	})
}

// bombardierDoc is the JSON of bombardier; times are in µs.
type bombardierDoc struct {
	Spec struct {
		Connections int     `json:"numberOfConnections"`
		Client      string  `json:"client"`
		Rate        float64 `json:"rate"`
		Asked       float64 `json:"testDurationSeconds"`
		Method      string  `json:"method"`
		URL         string  `json:"url"`
		Body        string  `json:"body"`
		BodyFile    string  `json:"bodyFilePath"`
		Stream      bool    `json:"stream"`
		Headers     []struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		} `json:"headers"`
	} `json:"spec"`
	Result struct {
		Read    float64 `json:"bytesRead"`
		Seconds float64 `json:"timeTakenSeconds"`
		R1      float64 `json:"req1xx"`
		R2      float64 `json:"req2xx"`
		R3      float64 `json:"req3xx"`
		R4      float64 `json:"req4xx"`
		R5      float64 `json:"req5xx"`
		Others  float64 `json:"others"`
		Errors  []struct {
			Description string `json:"description"`
		} `json:"errors"`
		Latency struct {
			Mean        float64            `json:"mean"`
			StdDev      float64            `json:"stddev"`
			Max         float64            `json:"max"`
			Percentiles map[string]float64 `json:"percentiles"`
		} `json:"latency"`
	} `json:"result"`
}

func matchBombardier(b []byte) bool {
	return adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"numberOfConnections"`)) && bytes.Contains(b, []byte(`"req2xx"`))
}

func decodeBombardier(b []byte) (adapter.Batch, error) {
	return decodeHTTPDocuments(b, "bombardier", func(doc bombardierDoc, batch *adapter.Batch) (*httpReport, error) {
		s, res := doc.Spec, doc.Result
		p := &httpReport{
			seconds: res.Seconds, connections: s.Connections, paced: s.Rate, whole: true,
			good: res.R2 + res.R3, bad: res.R1 + res.R4 + res.R5, failed: res.Others,
			times:  map[string]float64{"mean": res.Latency.Mean * 1e3, "stddev": res.Latency.StdDev * 1e3, "max": res.Latency.Max * 1e3},
			shares: map[float64]float64{},
		}
		if len(res.Errors) > 0 {
			p.failure = res.Errors[0].Description
		}
		if n := p.good + p.bad; n > 0 {
			p.body = res.Read / n
		}
		for key, us := range res.Latency.Percentiles {
			if share, err := adapter.Amount(key); err == nil {
				p.shares[share] = us * 1e3
			}
		}
		if s.Client != "" && s.Client != "fasthttp" {
			p.about.Condition("client=" + s.Client)
		}
		if s.Method != "" && s.Method != "GET" {
			p.about.Condition("method=" + s.Method)
		}
		p.about.URL(s.URL)
		p.about.Window = adapter.Seconds(s.Asked)
		if s.Stream || s.Body != "" || s.BodyFile != "" {
			p.about.Condition("body=true")
		}
		for _, header := range s.Headers {
			p.reconnect = p.reconnect || strings.EqualFold(header.Key, "Connection") && strings.EqualFold(header.Value, "close")
		}
		batch.LeaveOut("rps, which are means of short spans and not the requests over the time")
		return p, nil
	})
}
