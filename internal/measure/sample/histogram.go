package sample

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Range and precision of every histogram: 1 ns to one minute at three significant figures, so a recorded value is off
// by at most 0.1 %.
const (
	minLatencyNs = 1
	maxLatencyNs = 60_000_000_000
	figures      = 3
)

// Histogram is a distribution of times in ns. All have the same layout, so they can be merged. Record does not
// allocate. Its JSON form is the HdrHistogram V2 compressed encoding in base64, which other HDR tools read.
type Histogram struct{ h *hdr.Histogram }

// NewHistogram returns an empty histogram. It allocates about 200 KiB, once.
func NewHistogram() *Histogram { return &Histogram{h: hdr.New(minLatencyNs, maxLatencyNs, figures)} }

// Record adds one value in ns. A value above one minute is recorded as one minute, below 1 ns as 1 ns, so that every
// value counts.
func (h *Histogram) Record(ns int64) {
	// RecordValue only fails out of range, which the clamp excludes.
	_ = h.h.RecordValue(min(max(ns, minLatencyNs), maxLatencyNs))
}

// Merge adds all of o to h.
func (h *Histogram) Merge(o *Histogram) { h.h.Merge(o.h) }

// Count returns the number of recorded values.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Quantile returns the value in ns below or at which the share q (0 to 1) of all values lies; 0 if empty.
func (h *Histogram) Quantile(q float64) int64 { return h.h.ValueAtQuantile(q * 100) }

// Beyond is the least number of values beyond a percentile that is reported.
const Beyond = 10

// Percentile returns Quantile. ok means that the distribution has enough values for it: 20 for the median, 10,000 for
// the 99.9th percentile.
func (h *Histogram) Percentile(q float64) (ns int64, ok bool) {
	return h.Quantile(q), h.Count() >= int64(math.Round(Beyond/(1-q)))
}

// Percentiles returns the percentiles of a family of metrics that have enough values, in ns, in rising order.
func (h *Histogram) Percentiles(family string) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for name, q := range metric.Percentiles(family) {
			if ns, ok := h.Percentile(q); ok && !yield(name, float64(ns)) {
				return
			}
		}
	}
}

// Min returns the smallest value in ns. Like Max, Mean and Stddev it returns 0 for an empty distribution.
func (h *Histogram) Min() int64 { return h.h.Min() }

// Max returns the largest value in ns.
func (h *Histogram) Max() int64 { return h.h.Max() }

// Mean returns the arithmetic mean in ns.
func (h *Histogram) Mean() float64 { return h.h.Mean() }

// Stddev returns the standard deviation in ns.
func (h *Histogram) Stddev() float64 { return h.h.StdDev() }

// Each calls f for every bucket that is not empty, in rising order, with its count and its highest value in ns, which
// is the value that Quantile returns.
func (h *Histogram) Each(f func(ns, count int64)) {
	for _, b := range h.h.Distribution() {
		if b.Count > 0 {
			f(b.To, b.Count)
		}
	}
}

// MarshalJSON writes the V2 compressed encoding as a JSON string.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	b, err := h.h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON decodes what MarshalJSON encodes. It never panics on foreign input.
func (h *Histogram) UnmarshalJSON(b []byte) (err error) {
	defer func() {
		// The library indexes by lengths in the input; a hostile file must cause an error, not a crash.
		if r := recover(); r != nil {
			err = fmt.Errorf("decode histogram: %v", r)
		}
	}()
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	if err := checkLayout(s); err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	d, err := hdr.Decode([]byte(s))
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	h.h = d
	return nil
}

// The V2 compressed encoding is a cookie and a length of four bytes each, then deflated: cookie, payload length,
// normalizing offset and significant figures of four bytes each, lowest and highest value of eight, a ratio of eight.
const (
	envelopeSize  = 8
	headerSize    = 40
	figuresAt     = 12
	lowestValueAt = 16
	highestAt     = 24
)

// checkLayout refuses an encoded histogram with a larger range or a higher resolution than ours: the decoder would
// allocate memory for it.
func checkLayout(s string) error {
	r := base64.NewDecoder(base64.StdEncoding, strings.NewReader(s))
	if _, err := io.CopyN(io.Discard, r, envelopeSize); err != nil {
		return errors.New("it is shorter than its envelope")
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return err
	}
	var head [headerSize]byte
	if _, err := io.ReadFull(z, head[:]); err != nil {
		return fmt.Errorf("read its header: %w", err)
	}
	digits := binary.BigEndian.Uint32(head[figuresAt:])
	lowest, highest := binary.BigEndian.Uint64(head[lowestValueAt:]), binary.BigEndian.Uint64(head[highestAt:])
	if digits > figures || lowest > maxLatencyNs || highest > maxLatencyNs {
		return fmt.Errorf("its layout (%d figures, %d to %d) is beyond ours (%d figures, %d to %d)",
			digits, lowest, highest, figures, minLatencyNs, int64(maxLatencyNs))
	}
	return z.Close()
}
