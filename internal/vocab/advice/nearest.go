package advice

import (
	"fmt"
	"strings"
)

// longest is the length from which on a text is nobody's slip, in bytes: nothing is compared with it.
const longest = 100

// Nearest returns the one of names that is most like the word, letters' case aside, or "" where none is near: a word of
// which most is wrong is not a slip.
func Nearest(word string, names []string) string {
	if len(word) > longest {
		return ""
	}
	best, at := min(4, len(word)/2+1), ""
	for _, n := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(n)); d < best {
			best, at = d, n
		}
	}
	return at
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// DidYouMean returns `, did you mean "x"?` for the nearest of names, or the names that begin with the word and a hyphen. It
// returns "" if no name is near.
func DidYouMean(word string, names []string) string {
	var longer []string
	for _, n := range names {
		if strings.HasPrefix(n, word+"-") {
			longer = append(longer, n)
		}
	}
	if len(longer) > 0 {
		return ", did you mean one of " + strings.Join(longer, ", ") + "?"
	}
	if at := Nearest(word, names); at != "" {
		return fmt.Sprintf(", did you mean %q?", at)
	}
	return ""
}
