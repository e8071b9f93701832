package sample

import (
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func TestHistogramRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	h := NewHistogram()
	for range 10_000 {
		h.Record(int64(r.ExpFloat64() * 20_000))
	}
	h.Record(-5)
	h.Record(1 << 62)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var q Histogram
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	if q.Count() != 10_002 || q.Min() != h.Min() || q.Max() != h.Max() || q.Mean() != h.Mean() || q.Quantile(0.99) != h.Quantile(0.99) {
		t.Errorf("got %d values from %d to %d, want %d from %d to %d", q.Count(), q.Min(), q.Max(), h.Count(), h.Min(), h.Max())
	}
}

// TestHistogramRefusesWideLayouts decodes headers that ask for more memory than a file may cost.
func TestHistogramRefusesWideLayouts(t *testing.T) {
	for name, h := range map[string]*hdr.Histogram{
		"wide": hdr.New(1, 1<<62, 3),
		"fine": hdr.New(1, maxLatencyNs, 5),
		"both": hdr.New(1, 1<<62, 5),
	} {
		b, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		h = nil
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var q Histogram
		err = q.UnmarshalJSON([]byte(strconv.Quote(string(b))))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "is beyond ours") {
			t.Errorf("%s: got %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: refusing allocated %d bytes", name, got)
		}
	}
}

func FuzzHistogram(f *testing.F) {
	h := NewHistogram()
	h.Record(1000)
	b, err := json.Marshal(h)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add(`""`)
	f.Add(`"HISTFAAAAA=="`)
	f.Add(string(b[:len(b)-9]) + `"`)
	f.Fuzz(func(t *testing.T, s string) {
		var q Histogram
		if err := q.UnmarshalJSON([]byte(s)); err != nil {
			return
		}
		q.Quantile(0.5)
		if _, err := json.Marshal(&q); err != nil {
			t.Fatal(err)
		}
	})
}
