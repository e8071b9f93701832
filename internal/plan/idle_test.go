package plan

import (
	"strings"
	"testing"
	"time"
)

// TestIdle: its window is its own, not the plan's, long enough for two samples of a kubelet, and on one path alone.
func TestIdle(t *testing.T) {
	w, err := ParseWorkload("idle")
	if err != nil || w.Window != defaultIdleWindow || w.String() != "idle" {
		t.Errorf("%v %v %s", err, w.Window, w)
	}
	if w, err = ParseWorkload("idle(window=30s)"); err != nil || w.String() != "idle(window=30s)" || w.unfit(w.Window) != "" {
		t.Errorf("%v %s", err, w)
	}
	p := onCluster(t, func(p *Plan) {
		p.Workloads, p.Duration = []Workload{{Spec: Idle{}, Window: 3 * time.Second}}, time.Second
	})
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "idle(window=3s): the samples of a kubelet are up to 20s apart: give a window of 30s or more") {
		t.Errorf("%v", err)
	}
	for _, path := range Paths {
		if barred := w.Barred(path) != ""; barred == (path == Path{Pod, Pod, CrossNode}) {
			t.Errorf("%s: barred %v", path, barred)
		}
	}
}

// TestMeanWindow counts the window of a workload on the paths that it can go over.
func TestMeanWindow(t *testing.T) {
	p := small()
	p.Duration, p.Paths = time.Second, []Path{{Pod, Pod, CrossNode}, {Pod, Pod, SameNode}, {Pod, Host, CrossNode}}
	p.Workloads = []Workload{{Spec: RR{}}, Workload{Spec: Idle{}}.Normalize()}
	if got, want := p.meanWindow(), (3*time.Second+defaultIdleWindow+sampleWait)/4; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
