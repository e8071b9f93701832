package itinerary

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// recorded is a trace of a real lab, rr on pod-to-pod/cross-node.
func recorded(t *testing.T, profile string) journey.Trace {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", profile+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var trace journey.Trace
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	return trace
}

// devices are the devices and hooks on the way of the request, in order, each once where it follows itself.
func devices(i Itinerary) (names []string) {
	for _, s := range i.Steps[:i.Delivered()+1] {
		name := s.Host + " " + s.Device + s.Hook
		if s.Device+s.Hook != "" && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

// TestRecorded: the steps of a bridge with a tunnel, and of BPF redirects, as their dataplanes are built.
func TestRecorded(t *testing.T) {
	for profile, want := range map[string]struct {
		request  string
		activity map[Activity]int
		programs string
	}{
		"flannel-vxlan": {
			"node-1/pod-1 eth0, node-1 veth5ae5879a, node-1 PREROUTING, node-1 cni0, node-1 FORWARD, node-1 POSTROUTING, node-1 flannel.1, node-1 OUTPUT, node-1 POSTROUTING, node-1 eth0, " +
				"switch node-1, switch node-2, node-2 eth0, node-2 PREROUTING, node-2 INPUT, node-2 flannel.1, node-2 PREROUTING, node-2 FORWARD, node-2 POSTROUTING, node-2 cni0, node-2 veth89e4459d, node-2/pod-1 eth0",
			map[Activity]int{Netfilter: 20, Tunnel: 4, BPF: 0}, "",
		},
		"cilium-native": {
			"node-1/pod-1 eth0, node-1 lxc5ae5879ae392, node-1 eth0, switch node-1, switch node-2, node-2 eth0",
			map[Activity]int{Netfilter: 0, Tunnel: 0, BPF: 4}, "from_container to_netdev from_netdev from_container to_netdev from_netdev",
		},
	} {
		i, err := Of(recorded(t, profile))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(devices(i), ", "); got != want.request {
			t.Errorf("%s: the request passes\n%s\nwant\n%s", profile, got, want.request)
		}
		for a, n := range want.activity {
			if got := len(slices.DeleteFunc(slices.Clone(i.Steps), func(s Step) bool { return s.Activity != a })); got != n {
				t.Errorf("%s: %d steps of %s, want %d", profile, got, a, n)
			}
		}
		if got := strings.Join(slices.Concat(each.Of(i.Steps, func(s Step) []string { return s.Programs })...), " "); got != want.programs {
			t.Errorf("%s: programs %q, want %q", profile, got, want.programs)
		}
		if first, last := i.Steps[0], i.Steps[len(i.Steps)-1]; first.At != 0 || first.Point != journey.Send || last.Point != journey.Deliver || last.At != i.Total.Median {
			t.Errorf("%s: from %+v to %+v, in all %+v", profile, first, last, i.Total)
		}
		sum := 0.0
		for n, s := range i.Steps {
			sum += s.After.Median
			if math.Abs(sum-s.At) > 1e-6 || n > 0 && s.Activity == "" {
				t.Errorf("%s: step %d: intervals add up to %v: %+v", profile, n, sum, s)
			}
		}
	}
}

// TestOrderOfEventsDoesNotMatter: a buffer of several CPUs has no order.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	trace := recorded(t, "cilium-native")
	want, err := Of(trace)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(trace.Events), func(a, b int) { trace.Events[a], trace.Events[b] = trace.Events[b], trace.Events[a] })
	if got, err := Of(trace); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("another order gives %+v, %v", got, err)
	}
}

// TestWhatIsLeftOut: transactions that were cut off, took another way or were disturbed do not change a step, and are
// counted.
func TestWhatIsLeftOut(t *testing.T) {
	whole := recorded(t, "cilium-native")
	want, err := Of(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change             func(*journey.Trace, []journey.Event)
		alike, undisturbed int
	}{
		"cut off": {func(x *journey.Trace, one []journey.Event) { x.Events = append(x.Events, one[:len(one)-1]...) }, want.Alike, want.Undisturbed},
		"another way": {func(x *journey.Trace, one []journey.Event) {
			one[3].Device, one[3].Index = "eth1", 99
			x.Events = append(x.Events, one...)
		}, want.Alike, want.Undisturbed},
		"an acknowledgement more": {func(x *journey.Trace, one []journey.Event) {
			ack := one[2]
			ack.Length, ack.Time = 0, ack.Time+1
			x.Events = append(x.Events, append(one, ack)...)
		}, want.Alike, want.Undisturbed},
		"disturbed": {func(x *journey.Trace, one []journey.Event) {
			for n := range one[5:] {
				one[5+n].Time += 1e6
			}
			x.Events = append(x.Events, one...)
		}, want.Alike + 1, want.Undisturbed},
		"what follows the response": {func(x *journey.Trace, one []journey.Event) {
			late := one[2]
			late.Transaction, late.Time = 1, late.Time+1e9
			x.Events = append(x.Events, late)
		}, want.Alike, want.Undisturbed},
	} {
		changed := recorded(t, "cilium-native")
		var one []journey.Event
		for _, e := range changed.Events {
			if e.Transaction == 2 {
				e.Transaction = 99
				one = append(one, e)
			}
		}
		c.change(&changed, one)
		got, err := Of(changed)
		if err != nil || got.Alike != c.alike || got.Undisturbed != c.undisturbed || !reflect.DeepEqual(got.Steps, want.Steps) {
			t.Errorf("%s: %d alike and %d undisturbed, want %d and %d; %v", name, got.Alike, got.Undisturbed, c.alike, c.undisturbed, err)
		}
	}
}

// TestFaults: what makes a journey untrue or impossible is an error with a way out.
func TestFaults(t *testing.T) {
	for want, change := range map[string]func(*journey.Trace){
		"7 events were lost":      func(x *journey.Trace) { x.Lost = 7 },
		"no transaction was seen": func(x *journey.Trace) { x.Events = nil },
		"to its end: 23 sampled":  func(x *journey.Trace) { x.Client = "elsewhere" },
		"want at least 10": func(x *journey.Trace) {
			x.Events = slices.DeleteFunc(x.Events, func(e journey.Event) bool { return e.Transaction > 9 })
		},
		"9 of 9 transactions took t": func(x *journey.Trace) {
			x.Events = slices.DeleteFunc(x.Events, func(e journey.Event) bool { return e.Transaction > 9 })
		},
	} {
		x := recorded(t, "cilium-native")
		change(&x)
		if _, err := Of(x); err == nil || !strings.Contains(err.Error(), want) || advice.Of(err) == "" {
			t.Errorf("want %q, got %v with the advice %q", want, err, advice.Of(err))
		}
	}
}

// TestWhere: the last step that was passed.
func TestWhere(t *testing.T) {
	i := Itinerary{Steps: []Step{{At: 0}, {At: 10}, {At: 20}}}
	for at, want := range map[float64]int{-1: -1, 0: 0, 9: 0, 10: 1, 15: 1, 20: 2, 99: 2} {
		if got := i.Where(at); got != want {
			t.Errorf("at %v: step %d, want %d", at, got, want)
		}
	}
}

// TestEveryActivityIsNamed: what a rule gives is in the legend, with a reason.
func TestEveryActivityIsNamed(t *testing.T) {
	named := map[Activity]bool{}
	for _, a := range Activities {
		named[a.Activity] = a.About != ""
	}
	for _, r := range rules {
		if !named[r.activity] || r.why == "" {
			t.Errorf("%+v has no name or no reason", r)
		}
	}
	if !named[Stack] {
		t.Error("the rest has no name")
	}
}
