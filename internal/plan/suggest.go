package plan

import (
	"fmt"
	"strings"
)

// suggest returns `, did you mean "x"?` for the closest of names, or those that s is the first word of, or "" when none
// is near.
func suggest(s string, names []string) string {
	best, at := min(4, len(s)/2+1), "" // a word of which most is wrong is not a slip
	for _, n := range names {
		if d := distance(s, n); d < best {
			best, at = d, n
		}
	}
	var longer []string
	for _, n := range names {
		if strings.HasPrefix(n, s+"-") {
			longer = append(longer, n)
		}
	}
	if len(longer) > 0 {
		return ", did you mean one of " + strings.Join(longer, ", ") + "?"
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", at)
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
