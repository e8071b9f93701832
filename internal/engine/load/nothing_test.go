package load

import (
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestNothing has windows in which nothing was completed: the message says which window is needed if it was short.
func TestNothing(t *testing.T) {
	for _, tt := range []struct {
		protocol      plan.Protocol
		window, setup time.Duration
		waited        time.Duration
		want          string
	}{
		{plan.TCP, 100 * time.Millisecond, 0, 0, "use a window of at least 1s"}, // rr under 1 % loss in windows of 100 ms
		{plan.TCP, 10 * time.Second, 0, 0, "nothing was completed in the window"},
		{plan.TCP, 5 * time.Second, 9 * time.Second, 0, "use a window of at least 9s"}, // crr with a delay of 1 s each way
		{"icmp", 50 * time.Millisecond, 0, 0, "use a window of several round trips"},
		{plan.TCP, 200 * time.Millisecond, 0, 150 * time.Millisecond, "each load thread waited 150ms for its CPU, which something else held; stop that, or use a window of at least 1s"},
	} {
		side := &Trial{o: control.Prepare{Window: tt.window, Setup: tt.setup, Timeout: time.Second}, traits: plan.Traits{Protocol: tt.protocol}}
		if got := side.emptyWindowError(tt.waited).Error(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s in %s: %q, want %q", tt.protocol, tt.window, got, tt.want)
		}
	}
}

// TestHeld: a thread that is ready to run and does not is held up by others, one that sleeps or works is not.
func TestHeld(t *testing.T) {
	const second = int64(time.Second)
	for _, tt := range []struct {
		state byte
		used  int64
		want  string
	}{
		{'R', second / 50, "had 20ms of CPU time in 1s: something else holds its CPU"},
		{'D', 0, "cannot be interrupted"},
		{'R', second / 2, ""},
		{'S', 0, ""},
	} {
		if got := stallReason(tt.state, tt.used, second); !strings.HasSuffix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%c after %d ns: %q, want %q", tt.state, tt.used, got, tt.want)
		}
	}
}

// TestCause: the next request on a connection that the server ended after a refusal is not the cause, however often it
// fails.
func TestCause(t *testing.T) {
	for _, tt := range []struct {
		counts map[kind]uint64
		want   kind
	}{
		{map[kind]uint64{gone: 27, badStatus: 26}, badStatus},
		{map[kind]uint64{reset: 1, timedOut: 3, notOffered: 99}, timedOut},
		{map[kind]uint64{protocol: 1, gone: 2}, protocol},
	} {
		var counts [kinds]uint64
		for k, n := range tt.counts {
			counts[k] = n
		}
		if got := dominantKind(counts); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.counts, got, tt.want)
		}
	}
}
