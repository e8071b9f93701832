package external

import "strings"

// kinds map what tools and kernels say to the words that failures are counted by.
var kinds = []struct{ says, kind string }{
	{"refused", "connection refused"},
	{"timed out", "timeout"},
	{"timeout", "timeout"},
	{"deadline exceeded", "timeout"},
	{"interrupt", "interrupted"},
	{"terminated", "interrupted"},
	{"unreachable", "unreachable"},
	{"no route", "unreachable"},
	{"reset by peer", "reset"},
	{"closed", "closed"},
}

// kindOf finds the countable word for a message.
func kindOf(message string) string {
	low := strings.ToLower(message)
	for _, k := range kinds {
		if strings.Contains(low, k.says) {
			return k.kind
		}
	}
	return "error"
}

// part is one run within a text: its lines without the space around them, and the number of the first.
type part struct {
	line  int
	lines []string
}

// splitAt cuts a text of several runs before each line that begins one; what stands before the first belongs to it.
func splitAt(b []byte, begins func(line string) bool) []part {
	parts := []part{{line: 1}}
	begun := false
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if begins(line) {
			if begun && len(parts) < maxReadings {
				parts = append(parts, part{line: number})
			}
			begun = true
		}
		last := &parts[len(parts)-1]
		last.lines = append(last.lines, line)
	}
	return parts
}
