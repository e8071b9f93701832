package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
)

func matchK6(b []byte) bool {
	return adapter.StartsJSON(b) && bytes.Contains(b, []byte(`"http_req_duration"`)) && bytes.Contains(b, []byte(`"metrics"`))
}

// k6Doc is the summary of k6. The object of a metric has its values as fields in the file of --summary-export, and in a field
// "values" in the data of handleSummary.
type k6Doc struct {
	Metrics map[string]json.RawMessage `json:"metrics"`
	// Results are from the summary of 1.5 and later, in which metrics are a list.
	Results struct {
		Metrics []json.RawMessage `json:"metrics"`
	} `json:"results"`
	State struct {
		Milliseconds float64 `json:"testRunDurationMs"`
	} `json:"state"`
}

// values returns the numbers of a metric, nil if it is missing.
func (doc k6Doc) values(name string) map[string]float64 {
	var both struct {
		Values map[string]json.RawMessage `json:"values"`
	}
	raw := doc.Metrics[name]
	for _, item := range doc.Results.Metrics {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(item, &named) == nil && named.Name == name {
			raw = item
		}
	}
	if raw == nil || json.Unmarshal(raw, &both) != nil {
		return nil
	}
	all := both.Values
	if all == nil && json.Unmarshal(raw, &all) != nil {
		return nil
	}
	numbers := map[string]float64{}
	for key, value := range all {
		var v float64
		if json.Unmarshal(value, &v) == nil {
			numbers[key] = v
		}
	}
	return numbers
}

// idle is the least mean number of requests under way per connection. Below it, the client must have waited between
// requests.
const idle = 0.5

func decodeK6(b []byte) (adapter.Batch, error) {
	return decodeHTTPDocuments(b, "k6", func(doc k6Doc, batch *adapter.Batch) (*httpReport, error) {
		requests, times, failed := doc.values("http_reqs"), doc.values("http_req_duration"), doc.values("http_req_failed")
		if requests == nil || times == nil {
			return nil, errors.New("it has no http_reqs and http_req_duration")
		}
		p := &httpReport{seconds: doc.State.Milliseconds / 1e3, times: map[string]float64{}, shares: map[float64]float64{}}
		// The rate counts failed requests: its passes are failures. rate is its share in one form, value in the other.
		share := failed["rate"] + failed["value"]
		p.bad = requests["count"] * min(max(share, 0), 1)
		p.good = requests["count"] - p.bad
		if p.seconds == 0 {
			p.perSecond = requests["rate"] * (1 - min(max(share, 0), 1))
		}
		p.connections = int(min(max(doc.values("vus_max")["value"], doc.values("vus_max")["max"]), 1e6))
		received := doc.values("data_received")
		if requests["count"] > 0 {
			p.body, p.whole = received["count"]/requests["count"], true
		}
		if received["count"] == 0 && p.good == 0 {
			p.failed, p.bad, p.failure = p.bad, 0, "no request was answered"
		}
		if doc.values("http_req_tls_handshaking")["max"] > 0 {
			p.about.Condition("tls=true")
		}
		p.reconnect = doc.values("http_req_connecting")["med"] > 0 // most requests waited for a connection of their own
		p.unsaid = requests["rate"]*times["avg"]/1e3 < idle*float64(p.connections)
		for member, key := range map[string]string{"min": "min", "mean": "avg", "max": "max"} {
			p.times[member] = times[key] * 1e6
		}
		p.shares[50] = times["med"] * 1e6
		for key, ms := range times {
			if text, ok := strings.CutPrefix(key, "p("); ok {
				if q, err := adapter.Amount(strings.TrimSuffix(text, ")")); err == nil {
					p.shares[q] = ms * 1e6
				}
			}
		}
		batch.LeaveOut("whether it was over IPv6, since k6 does not print the URL")
		batch.LeaveOut("checks, thresholds and the parts of a request, and p(95), for which there is no metric; ask k6 for p(99) by --summary-trend-stats")
		return p, nil
	})
}
