package plan

import (
	"strings"
	"testing"
	"time"
)

func TestRollIsRead(t *testing.T) {
	for text, want := range map[string]Workload{
		"http(backends=3,roll)":                     {Spec: HTTP{Backends: 3, Roll: true}},
		"http(backends=3,roll=true)":                {Spec: HTTP{Backends: 3, Roll: true}},
		"http(backends=3,roll=false)":               {Spec: HTTP{Backends: 3}},
		"http(backends=2,roll,drain=1500ms)":        {Spec: HTTP{Backends: 2, Roll: true, Drain: 1500 * time.Millisecond}},
		"http(backends=2,roll,drain=0s,rate=1K)":    {Spec: HTTP{Backends: 2, Roll: true, Rate: 1000}},
		"http(backends=2,roll,connection=close)":    {Spec: HTTP{Backends: 2, Roll: true, Connection: "close"}},
		"http(roll,drain=2s,backends=2,load=50.5%)": {Spec: HTTP{Backends: 2, Roll: true, Drain: 2 * time.Second, Load: 0.505}},
	} {
		got, err := ParseWorkload(text)
		if err != nil || got != want.Normalize() {
			t.Errorf("%s: %+v, %v", text, got, err)
			continue
		}
		if again, err := ParseWorkload(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which reads as %+v (%v)", text, got, again, err)
		}
	}
	for text, says := range map[string]string{
		"http(roll)":                         "want backends=2 or more",
		"http(backends=1,roll)":              "want backends=2",
		"http(backends=3,drain=1s)":          "want roll, too",
		"http(backends=3,roll,drain=2m)":     "want 0s to 1m0s",
		"http(backends=3,roll,drain=-1s)":    "want 0s to",
		"http(backends=3,roll,drain=soon)":   "is not a duration",
		"http(backends=3,roll=often)":        "not true or false",
		"rr(roll)":                           "rr has no roll",
		"http(backends=3,roll,tool=wrk)":     "only our own servers can be rolled",
		"http(backends=3,roll,drain=1s,rol)": `did you mean "roll"`,
	} {
		if _, err := ParseWorkload(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// TestRollSteps: one backend at most is out at any moment, each is for as long, and all are in at both ends.
func TestRollSteps(t *testing.T) {
	for _, n := range []int{2, 3, 7, 250} {
		w := Workload{Spec: HTTP{Backends: n, Roll: true}}.Normalize()
		window, last := 20*time.Second, time.Duration(0)
		for i := range n {
			out, back := w.RollStep(window, i)
			if out <= last || back <= out || back >= window {
				t.Errorf("%d backends: number %d is out from %s to %s, the one before until %s", n, i, out, back, last)
			}
			if away := back - out; away < window/time.Duration(2*n)-time.Microsecond || away > window/time.Duration(2*n)+time.Microsecond {
				t.Errorf("%d backends: number %d is out for %s", n, i, away)
			}
			last = back
		}
	}
}

func TestRollNeedsAWindow(t *testing.T) {
	w := func(text string) Workload {
		w, err := ParseWorkload(text)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, c := range []struct {
		text   string
		window time.Duration
		says   string
	}{
		{"http(backends=3,roll)", 300 * time.Millisecond, ""},
		{"http(backends=3,roll)", 299 * time.Millisecond, "--duration 300ms"},
		{"http(backends=3,roll,drain=400ms)", 3 * time.Second, ""},
		{"http(backends=3,roll,drain=401ms)", 3 * time.Second, "drains 401ms"},
		{"http(backends=3)", time.Millisecond, ""},
	} {
		why := w(c.text).whyUnfit(c.window)
		if (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s in %s: %v, want %q", c.text, c.window, why, c.says)
		}
	}
	p := Default()
	p.Workloads = []Workload{w("http(backends=3,roll)"), w("rr")}
	if f := p.Fit(4); f.Duration < 1200*time.Millisecond || f.Validate() != nil {
		t.Errorf("chosen for the lab: %s, %v", f.Duration, f.Validate())
	}
	p.Workloads[0] = w("http(backends=3,roll,drain=3s)")
	if f := p.Fit(4); f.Duration != 36*time.Second || f.Validate() != nil {
		t.Errorf("chosen for a drain of 3 s: %s, %v", f.Duration, f.Validate())
	}
	p.Duration = time.Second
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "drains 3s") {
		t.Errorf("a drain longer than all: %v", err)
	}
	if got, kept := p.Rolled(), p.Backends(); len(got) != 1 || got[0] != 3 || len(kept) != 0 {
		t.Errorf("rolled %v, kept %v", got, kept)
	}
	if c, ok := w("http(backends=3,roll,load=50%)").Capacity(); !ok || c.Traits().Roll || c.Traits().Backends != 3 {
		t.Errorf("a load is a share of what the same backends do undisturbed: %s", c)
	}
}
