package adapter

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

// FailureKind finds the countable word for a message.
func FailureKind(message string) string {
	low := strings.ToLower(message)
	for _, k := range kinds {
		if strings.Contains(low, k.says) {
			return k.kind
		}
	}
	return "error"
}

// Part is one run within a text: its lines without the space around them, and the number of the first.
type Part struct {
	Line  int
	Lines []string
}

// Split cuts a text of several runs before each line that begins one. Lines before the first run belong to it.
func Split(b []byte, begins func(line string) bool) []Part {
	parts := []Part{{Line: 1}}
	begun := false
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if begins(line) {
			if begun && len(parts) < MaxReadings {
				parts = append(parts, Part{Line: number})
			}
			begun = true
		}
		last := &parts[len(parts)-1]
		last.Lines = append(last.Lines, line)
	}
	return parts
}
