package plan

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Idle sends nothing: it is what nodes and their daemons use while no trial runs.
type Idle struct{}

const (
	// defaultIdleWindow is the window of idle, leastIdleWindow the shortest that spans two samples of a kubelet, which are up to
	// 20 s apart.
	defaultIdleWindow = time.Minute
	leastIdleWindow   = 30 * time.Second
	// sampleWait is about how long a trial of idle waits for samples besides.
	sampleWait = 20 * time.Second
)

var idleKind = kind{name: "idle", about: "nothing: it reads what the nodes of a cluster and their daemons use at rest", title: "Nodes and daemons at rest", zero: Idle{}, options: []option{byWindow},
	apart: true, unchanged: "nothing changes at rest: measure %s without churn", window: defaultIdleWindow, wait: sampleWait}

func (s Idle) kind() *kind { return &idleKind }

// Traits implements Spec.
func (s Idle) Traits() Traits {
	return Traits{Rests: true, Work: nothing, Decides: []string{metric.IdleCPU + ".network", metric.IdleMemory + ".network"}}
}

func (s Idle) normalize() Spec { return s }

func (s Idle) check(*faultList) {}

// barred implements chooser.
func (s Idle) barred(p Path) string {
	if p != (Path{Pod, Pod, CrossNode}) {
		return "it reads the nodes of pod-to-pod/cross-node"
	}
	return ""
}

// unfit implements fitter.
func (s Idle) unfit(window time.Duration) string {
	if window < leastIdleWindow {
		return fmt.Sprintf("the samples of a kubelet are up to 20s apart: give a window of %s or more", leastIdleWindow)
	}
	return ""
}
