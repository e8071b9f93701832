package plan

import "strconv"

// formatRate writes a rate in bit/s the way the command line reads it: "1G", "250M", "1500".
func formatRate(r float64) string {
	for _, u := range []struct {
		letter string
		size   float64
	}{{"G", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if r >= u.size {
			return strconv.FormatFloat(r/u.size, 'g', -1, 64) + u.letter
		}
	}
	return strconv.FormatFloat(r, 'g', -1, 64)
}
