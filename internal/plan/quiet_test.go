package plan

import (
	"testing"
	"time"
)

// TestMeanWindow counts the window of a workload on the paths that it can go over.
func TestMeanWindow(t *testing.T) {
	before := kinds
	t.Cleanup(func() { kinds = before })
	Quiet{Name: "asleep", Window: time.Minute, Wait: time.Second, Barred: func(p Path) string {
		if p != (Path{Pod, Pod, CrossNode}) {
			return "not there"
		}
		return ""
	}}.Register()
	p := small()
	p.Duration, p.Paths = time.Second, []Path{{Pod, Pod, CrossNode}, {Pod, Pod, SameNode}, {Pod, Host, CrossNode}}
	p.Workloads = []Workload{{Spec: RR{}}, Kind("asleep").Default()}
	if got, want := p.meanWindow(), (3*time.Second+time.Minute+time.Second)/4; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
