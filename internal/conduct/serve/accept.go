package serve

import (
	"mime"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/report/openmetrics"
)

// maxRanges is the most media ranges of a request that are looked at.
const maxRanges = 32

// negotiate is the syntax that an Accept header wants most; without a preference it is the one that every scraper and a
// browser can read.
func negotiate(accept string) openmetrics.Syntax {
	open, plain := 0.0, 0.0
	for i, text := range strings.Split(accept, ",") {
		if i == maxRanges {
			break
		}
		kind, params, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		q := quality(params)
		switch kind {
		case "application/openmetrics-text":
			if v := params["version"]; v == "" || v == "1.0.0" {
				open = max(open, q)
			}
		case "text/plain", "text/*", "*/*":
			plain = max(plain, q)
		}
	}
	if open > 0 && open >= plain {
		return openmetrics.OpenMetrics
	}
	return openmetrics.Prometheus
}

// quality is the q of a media range, 0 if it is none.
func quality(params map[string]string) float64 {
	text, ok := params["q"]
	if !ok {
		return 1
	}
	q, err := strconv.ParseFloat(text, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
