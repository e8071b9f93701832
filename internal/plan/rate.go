package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxRate is the largest rate in bit/s.
const MaxRate = 1e12

// formatRate formats a rate in bit/s as on the command line: "1G", "250M", "1500".
func formatRate(r float64) string {
	for _, u := range []struct {
		letter string
		size   float64
	}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if r >= u.size {
			return strconv.FormatFloat(r/u.size, 'f', -1, 64) + u.letter
		}
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}

// parseBitRate parses a rate in bit/s: a number, optionally with a suffix K, M, G or T for powers of 1000 ("1G",
// "2.5M", "1500"). The result is whole bit/s from 0 to MaxRate.
func parseBitRate(s string) (float64, error) { return parseRate(s, 1) }

// parseRate parses a rate as parseBitRate does, but rounds it to a multiple of 1/part.
func parseRate(s string, part float64) (float64, error) {
	digits, scale := s, 1.0
	if s != "" {
		if i := strings.IndexByte("kKmMgGtT", s[len(s)-1]); i >= 0 {
			digits, scale = s[:len(s)-1], []float64{1e3, 1e6, 1e9, 1e12}[i/2]
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a rate: want bit/s such as 1G, 250M or 1500", s)
	}
	v = math.Round(v*scale*part) / part
	if !(v >= 0 && v <= MaxRate) {
		return 0, fmt.Errorf("rate %q is out of range: want 0 to 1T bit/s", s)
	}
	return v, nil
}

// parseSize parses a number of bytes: digits, optionally with a suffix Ki or Mi for powers of 1024. It fails for other
// texts and for numbers that are out of range.
func parseSize(s string) (int, error) {
	digits, shift := s, 0
	if d, ok := strings.CutSuffix(s, "Ki"); ok {
		digits, shift = d, 10
	} else if d, ok := strings.CutSuffix(s, "Mi"); ok {
		digits, shift = d, 20
	}
	v, err := strconv.ParseInt(digits, 10, 32)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("size %q is out of range: want at most %dMi", s, maxBuffer>>20)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: want bytes such as 1024, 128Ki or 1Mi", s)
	}
	return int(v) << shift, nil
}
