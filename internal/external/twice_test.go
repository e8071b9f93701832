package external

import (
	"os"
	"strings"
	"testing"
)

// TestEveryRun: of an input that holds every sample twice, twice as many trials are read, or it is refused. None is read by
// its first run alone.
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

// TestFailedFirst: a run that failed before its first line and the one behind it are two.
func TestFailedFirst(t *testing.T) {
	for _, names := range [][2]string{
		{"iperf3/testdata/iperf3-text/refused.txt", "iperf3/testdata/iperf3-text/tcp.txt"}, {"netperf/testdata/netperf/refused.txt", "netperf/testdata/netperf/v27_tcp_rr.txt"},
	} {
		failed, whole := sampleText(t, names[0]), sampleText(t, names[1])
		for _, c := range []struct {
			text string
			want string
		}{{failed + whole, "failed ok"}, {failed + failed + whole, "failed failed ok"}, {whole + failed, "ok failed"}, {whole + failed + whole, "ok failed ok"}} {
			b, err := Decode("", []byte(c.text))
			var got []string
			for _, r := range b.Readings {
				got = append(got, map[bool]string{true: "failed", false: "ok"}[r.Failure != nil])
			}
			if s := strings.Join(got, " "); s != c.want || err != nil {
				t.Errorf("%v: %s, want %s: %v", names, s, c.want, err)
			}
		}
	}
}
