package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var acrossNodes = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// nursery is a cluster whose new pods report at once, by a clock an hour ahead.
func nursery(t *testing.T, report func(begin time.Time) First) (*world, *Cluster) {
	t.Helper()
	w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{acrossNodes}, NewPods: true}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.become = reporting(t, report)
	return w, c
}

// reporting lets pods end at once with a report, by a clock an hour ahead.
func reporting(t *testing.T, report func(begin time.Time) First) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		b, err := json.Marshal(report(time.Now().Add(time.Hour)))
		if err != nil {
			t.Error(err)
		}
		p.Status.ContainerStatuses = terminated(string(b))
	}
}

func arriving() control.Arrivals {
	return control.Arrivals{Route: plan.Single(plan.VariantOf("cni"), acrossNodes), To: control.Endpoint{Address: "10.0.0.2", Port: 5201}, Rate: 50, Window: 100 * time.Millisecond,
		Timeout: 5 * time.Second, Opens: func() error { return nil }}
}

// TestNewPods: pods that answer are timed by the clock of their node, set to this machine's, and are gone afterwards.
func TestNewPods(t *testing.T) {
	w, c := nursery(t, func(begin time.Time) First {
		at := func(ms int64) int64 { return begin.UnixNano() + ms*1e6 }
		return First{Network: at(300), Begin: at(500), Connected: at(600), Answered: at(700), Dials: 90, DialNs: 2e6}
	})
	before := w.left(t)
	o, err := c.NewPods(t.Context(), arriving())
	if err != nil {
		t.Fatal(err)
	}
	if o.Schedule.Due != 5 || o.Schedule.Sent != 5 || o.Operations != 5 || len(o.Errors) > 0 || o.CPU.ThreadsNs != 0 {
		t.Errorf("%+v", o)
	}
	for part, want := range map[string]float64{metric.WaitContainer: 200, metric.WaitConnect: 100, metric.WaitAnswer: 100} {
		if got := float64(o.Pods.Waits[part]) / 5e6; got < want-1 || got > want+1 {
			t.Errorf("%s: %.1f ms, want %.0f", part, got, want)
		}
	}
	// The start of the program is by the clock of the node, however far that is ahead.
	if least, most := o.Pods.Start.Min(), o.Pods.Start.Max(); least < 199e6 || most > 201e6 || o.Pods.First.Min() <= most {
		t.Errorf("from start: %d to %d ns, from due at least %d", least, most, o.Pods.First.Min())
	}
	if o.Pods.Dials != 5*90 || o.Pods.DialNs != 5*2e6 || o.Pods.Attached != sample.AttachedByPlugins || o.Pods.Unanswered != 0 {
		t.Errorf("%+v", o.Pods)
	}
	if o.Pods.Waits[metric.WaitSandbox] == 0 || o.Pods.ClockNs <= 0 {
		t.Errorf("%+v", o.Pods)
	}
	if after := w.left(t); !slices.Equal(before, after) {
		t.Errorf("left %v, was %v", after, before)
	}
}

// TestNewPodsInPart: pods without an answer have the timeout as their time.
func TestNewPodsInPart(t *testing.T) {
	w, c := nursery(t, nil)
	answers := reporting(t, func(begin time.Time) First {
		at := begin.UnixNano()
		return First{Begin: at + 1e6, Connected: at + 2e6, Answered: at + 3e6}
	})
	var n atomic.Int32
	w.become = func(p *corev1.Pod) {
		if n.Add(1)%2 == 0 {
			p.Status.ContainerStatuses = terminated(`{"Kind":"timeout","Failure":"connect","Begin":1,"Dials":494}`)
			return
		}
		answers(p)
	}
	o, err := c.NewPods(t.Context(), arriving())
	if err != nil {
		t.Fatal(err)
	}
	lost := o.Pods.Unanswered
	if lost == 0 || o.Operations == 0 || o.Errors["timeout"] != lost || o.Operations+lost != 5 || o.Pods.Dials != 494*lost {
		t.Errorf("%d answered, %d not, %v, %d dials", o.Operations, lost, o.Errors, o.Pods.Dials)
	}
	for _, h := range []*sample.Histogram{o.Pods.First, o.Pods.Start} {
		if h.Count() != 5 || h.Max() < o.Pods.TimeoutNs || o.Pods.TimeoutNs != 5e9 {
			t.Errorf("%d times to %d, timeout %d", h.Count(), h.Max(), o.Pods.TimeoutNs)
		}
	}
}

// TestNewPodsThatFail: each failure has its kind and what is known.
func TestNewPodsThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*world)
		kind, want string
	}{
		"refused": {func(w *world) {
			w.become = func(p *corev1.Pod) {
				p.Status.ContainerStatuses = terminated(`{"Kind":"connection refused","Failure":"dial"}`)
			}
		}, "connection refused", ": dial"},
		"no report": {func(w *world) {
			w.become = func(p *corev1.Pod) { p.Status.ContainerStatuses = terminated("") }
		}, "not started", "no report"},
		"not created": {func(w *world) {
			w.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("exceeded quota")
			})
		}, "not created", "exceeded quota"},
		"another clock": {func(w *world) {
			w.become = func(p *corev1.Pod) { p.Status.ContainerStatuses = terminated(`{"Begin":1,"Connected":2,"Answered":3}`) }
		}, "clock", "was set"},
		"late": {func(w *world) {
			w.become = func(p *corev1.Pod) {
				p.Status.ContainerStatuses = terminated(fmt.Sprintf(`{"Begin":1,"Connected":2,"Answered":%d}`, time.Now().Add(time.Hour+time.Minute).UnixNano()))
			}
		}, "timeout", "after the pod was due"},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := nursery(t, func(time.Time) First { return First{} })
			tc.change(w)
			_, err := c.NewPods(t.Context(), arriving())
			var why *control.Error
			if !errors.As(err, &why) || why.Kind != tc.kind || !strings.Contains(why.Message, tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func terminated(message string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}
}

// TestHostTakesNoNewPods: pods in the network of their node are not attached.
func TestHostTakesNoNewPods(t *testing.T) {
	_, c := nursery(t, func(time.Time) First { return First{} })
	r := plan.Single(plan.VariantOf("host"), acrossNodes)
	r.NewPods = true
	var not *control.NotServedError
	if _, err := c.Endpoints(r); !errors.As(err, &not) {
		t.Error(err)
	}
}
