// Package advice adds one line of advice to an error, and finds the name that a mistyped word probably means.
//
// An error describes what went wrong; a hint what to do next. They are separate so that a caller can print the advice
// on a line of its own and a test can match the error alone.
package advice

import (
	"errors"
	"fmt"
	"strings"
)

// longest is the longest input in bytes that is treated as a typo.
const longest = 100

// Nearest returns the name that differs from the word by the fewest mistakes, ignoring case, or "" if no name is near: at
// most three mistakes, and at most half as many as the word has letters. Two letters in the wrong order are one mistake.
func Nearest(word string, names []string) string {
	return nearestName(min(4, len(word)/2+1), word, names)
}

// Slip returns the name that differs from the word by at most one mistake, or by at most two if the word has eight letters
// or more. It ignores case, and returns "" if there is no such name.
func Slip(word string, names []string) string {
	if len(word) < 8 {
		return nearestName(2, word, names)
	}
	return nearestName(3, word, names)
}

// nearestName returns the name that differs from the word by the fewest mistakes, "" if no name differs by fewer
// than best.
func nearestName(best int, word string, names []string) string {
	if len(word) > longest {
		return ""
	}
	at := ""
	for _, n := range names {
		if d := editDistance(strings.ToLower(word), strings.ToLower(n)); d < best {
			best, at = d, n
		}
	}
	return at
}

// editDistance returns the smallest number of edits that turn a into b. An edit inserts, removes or changes a byte,
// or swaps two neighbours.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// DidYouMean returns `, did you mean "x"?` with the nearest of names. If some names begin with the word and a hyphen,
// it lists these instead. It returns "" if no name is near.
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

// hinted is an error with advice.
type hinted struct {
	err    error
	advice string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// With returns err with advice, which Of finds. The text of the error does not change. It returns nil if err is nil.
func With(err error, advice string) error {
	if err == nil {
		return nil
	}
	return &hinted{err: err, advice: advice}
}

// Of returns the outermost advice in err, or "" if there is none.
func Of(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.advice
	}
	return ""
}

// Quote quotes s as one word of a shell command, if that is necessary.
func Quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=~@%+"
	if s != "" && strings.Trim(s, plain) == "" && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
