package number

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseCPUs parses a list of CPU numbers as the kernel writes it: "1", "0-3,6". The result is in rising order, each
// number once. It fails for other text, and for a number above 4095.
func ParseCPUs(s string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseUint(low, 10, 12)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseUint(high, 10, 12)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 1 or 0-3,6", s)
		}
		for n := first; n <= last; n++ {
			cpus = append(cpus, int(n))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}
