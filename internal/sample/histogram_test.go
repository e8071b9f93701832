package sample

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantilesAreWithinOneInThousand(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram()
	values := make([]int64, 20_000)
	for i := range values {
		values[i] = int64(math.Exp(rng.NormFloat64()*2 + 10))
		h.Record(values[i])
	}
	slices.Sort(values)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		rank := max(int(math.Ceil(q*float64(len(values))))-1, 0)
		want := float64(values[rank])
		if got := float64(h.Quantile(q)); math.Abs(got-want) > want/1000+1 {
			t.Errorf("quantile %v = %v, want %v within 0.1 %%", q, got, want)
		}
	}
	if h.Count() != int64(len(values)) {
		t.Errorf("count %d, want %d", h.Count(), len(values))
	}
}

func TestNoCountIsLost(t *testing.T) {
	h := NewHistogram()
	for _, v := range []int64{math.MinInt64, -1, 0, 1, maxLatencyNs, maxLatencyNs + 1, math.MaxInt64} {
		h.Record(v)
	}
	if h.Count() != 7 {
		t.Errorf("count %d, want 7", h.Count())
	}
}

func TestMergeIsAsIfRecordedOnce(t *testing.T) {
	a, b, both := NewHistogram(), NewHistogram(), NewHistogram()
	for i := range int64(1000) {
		a.Record(i * i)
		b.Record(i * 1000)
		both.Record(i * i)
		both.Record(i * 1000)
	}
	a.Merge(b)
	a.Merge(nil)
	for q := 0.0; q <= 1; q += 0.01 {
		if a.Quantile(q) != both.Quantile(q) {
			t.Fatalf("quantile %v: merged %d, recorded %d", q, a.Quantile(q), both.Quantile(q))
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	h := NewHistogram()
	for i := range int64(5000) {
		h.Record(9000 + i*i%7001)
	}
	b, err := json.Marshal(Observation{Side: "client", RTT: h})
	if err != nil {
		t.Fatal(err)
	}
	var o Observation
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	if o.Connect != nil {
		t.Error("an absent histogram came back as present")
	}
	if o.RTT.Count() != h.Count() || o.RTT.Quantile(0.99) != h.Quantile(0.99) || o.RTT.Max() != h.Max() {
		t.Errorf("round trip changed the histogram: %d values, p99 %d", o.RTT.Count(), o.RTT.Quantile(0.99))
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := NewHistogram()
	if n := testing.AllocsPerRun(1000, func() { h.Record(12345) }); n != 0 {
		t.Errorf("%v allocations per value", n)
	}
}

func FuzzHistogramJSON(f *testing.F) {
	h := NewHistogram()
	h.Record(5)
	b, _ := json.Marshal(h)
	f.Add(b)
	f.Add([]byte(`""`))
	f.Add([]byte(`"HISTFAAAAB542pNpmSzMwMDAxQABzFCaEUoz2X+AsQA/LQKT"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Histogram
		if json.Unmarshal(b, &h) == nil {
			h.Quantile(0.5)
		}
	})
}
