package external

import (
	"os"
	"strings"
	"testing"
)

// TestEveryRun: of an input that holds every sample twice, twice as many trials are read, or it is refused. None is read by its
// first run alone.
func TestEveryRun(t *testing.T) {
	names, _ := Formats()
	for _, name := range names {
		for _, file := range samples(t, name) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			one, err := Decode(name, b)
			if err != nil || len(one.Readings) == 0 {
				continue
			}
			text := strings.TrimRight(string(b), "\n") + "\n"
			two, err := Decode(name, []byte(text+text))
			if err == nil && len(two.Readings) != 2*len(one.Readings) {
				t.Errorf("%s: %d trials, and %d of it twice", file, len(one.Readings), len(two.Readings))
			}
			if two, err = Decode("", []byte(text+"\n\n"+text)); err == nil && len(two.Readings) != 2*len(one.Readings) {
				t.Errorf("%s: %d trials, and %d of it twice with a blank line", file, len(one.Readings), len(two.Readings))
			}
		}
	}
}
