package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// mostNewPods bounds the new pods that exist at the same time. madeAhead bounds the namespaces that wait for
	// their attachment.
	mostNewPods = 32
	madeAhead   = 2
)

// Kinds of failures that only new pods have, in addition to those of connections.
const (
	kindNamespace = "no namespace"
	kindAttach    = "not attached"
	kindRemove    = "not removed"
)

// checkNewPods returns a *control.NotServedError if no pod can be added to the first node of a raised instance.
func (i *Instance) checkNewPods(p plan.Path) error {
	rules := i.Spec.dataplane.Rules(i.Spec.Nodes[0], i.Spec.Nodes[1:])
	why := ""
	switch {
	case i.Spec.Nodes[0].Pods[0].HostNetwork:
		why = "its pods share the network of their node: nothing is attached"
	case rules.Calico != nil && rules.Calico.NFTables:
		why = "this version does not model how Felix adds one pod in nftables mode"
	case rules.KubeRouter != nil:
		why = "kube-router writes all its rules anew for each pod, which this version does not model"
	case rules.AWS != nil:
		why = "each pod has a routing rule on its node, which this version does not remove with the pod"
	case i.Profile.Services == ebpfServices && i.Nodes[0].programs.Pods == nil:
		why = "its programs take no new pods while they run"
	case i.Spec.Plugged() && (rules.Calico != nil || i.Nodes[0].programs.Pods != nil):
		why = "its plugins attach pods to a base with rules or programs for each pod, which this version does not add: give no based-on"
	case i.Spec.file.ChangesPods():
		why = "its profile file changes pods (pod, or bpf with dev: pods), which this version does not do to new pods"
	case len(i.Spec.sparePods(0)) == 0:
		why = fmt.Sprintf("the address range of a node has no room besides its %d pods: use fewer (--pods-per-node)", i.Spec.Lab.PodsPerNode)
	}
	if why == "" {
		return nil
	}
	return i.Spec.notServedError(p, why)
}

// sparePods describes the pods that a node could have in addition to its own, at most mostNewPods. They need no
// further address block. It returns nil if the address range has no room.
func (s instanceSpec) sparePods(node int) []dataplane.Pod {
	n := s.Nodes[node]
	for more := min(mostNewPods, plan.MaxPodsPerNode-len(n.Pods)); more > 0; more-- {
		wider := dataplane.Node{Name: n.Name, Addr: n.Addr, MAC: n.MAC, MTU: n.MTU, Cluster: n.Cluster}
		s.dataplane.Arrange(&wider, node+1, len(n.Pods)+more)
		if len(wider.Blocks) == len(n.Blocks) {
			if s.Plugged() {
				more = min(more, spareAddresses) // its plugins may not have more addresses
			}
			return wider.Pods[len(n.Pods):][:more]
		}
	}
	return nil
}

// arrivals makes the new pods of one trial.
type arrivals struct {
	inst *Instance
	o    control.Arrivals
	to   netip.AddrPort
	// hop is the address whose next hop a new pod resolves. server is the namespace of the server.
	hop    netip.Addr
	server *netns.NS
	dialer *Dialer
	// agent is held while the node's agent or plugins change something, because they serve one pod at a time. It
	// guards rules, which describes the present rules for all pods.
	agent sync.Mutex
	rules policy.Node

	// free has the pods that do not exist now. ready has pods with a namespace that are not attached yet.
	free  chan dataplane.Pod
	ready chan made

	// stop ends the trial with an error. A pod that cannot be removed ends the trial, because it would disturb later pods.
	stop context.CancelCauseFunc
	mu   sync.Mutex
	seen sample.Observation
}

// made is a pod with its namespace, or the error of making the namespace.
type made struct {
	pod *newPod
	err error
}

// NewPods attaches pods at a rate to the first node. Each namespace exists before the intended time of its pod. Then
// the pod is attached, its program starts, and it dials until one request is answered. NewPods returns when all pods
// are removed. Pods count if their intended time is in the window; one earlier pod warms up.
func (l *Lab) NewPods(ctx context.Context, o control.Arrivals) (*sample.Observation, error) {
	inst, err := l.raisedInstance(o.Route.Variant)
	if err != nil {
		return nil, err
	}
	a, err := inst.newArrivals(o)
	if err != nil {
		return nil, err
	}
	defer a.dialer.Close()
	ctx, a.stop = context.WithCancelCause(ctx)
	defer a.stop(nil)
	made := make(chan error)
	go func() { made <- a.makeSandboxes(ctx) }()
	err = a.runTrial(ctx)
	a.stop(nil)
	err = errors.Join(err, <-made)
	for m := range a.ready { // closed by makeSandboxes
		if m.pod != nil {
			err = errors.Join(err, m.pod.close())
		}
	}
	if err != nil {
		return nil, err
	}
	return a.trialObservation()
}

func (i *Instance) newArrivals(o control.Arrivals) (*arrivals, error) {
	to, err := netip.ParseAddr(o.To.Address)
	if err != nil {
		return nil, err
	}
	ends, err := i.Spec.Ends(o.Route.Path)
	if err != nil {
		return nil, err
	}
	server := i.Host(ends.Server)
	a := &arrivals{inst: i, o: o, to: netip.AddrPortFrom(to, uint16(o.To.Port)), rules: i.Spec.Netfilter(0), server: server.NS, dialer: &Dialer{}}
	a.hop = a.nextHop(server.Addr)
	if i.Profile.Services == ebpfServices && o.Route.Path.ByService() {
		if a.dialer, err = i.Dialer(&a.node().Host); err != nil {
			return nil, err
		}
	}
	spare := i.Spec.sparePods(0)
	a.free, a.ready = make(chan dataplane.Pod, len(spare)), make(chan made, madeAhead)
	for _, p := range spare {
		a.free <- p
	}
	attached := sample.AttachedInProcess
	if i.Spec.Plugged() {
		attached = sample.AttachedByPlugins
	}
	a.seen = sample.NewPods(control.SideClient, o.Timeout, attached)
	a.seen.LoadCPUs = slices.Clone(a.node().CPUs)
	return a, nil
}

// node returns the node to which pods are attached: the first.
func (a *arrivals) node() *Node { return a.inst.Nodes[0] }

// makeSandboxes makes namespaces for pods until ctx is done, and closes ready. It fails if it cannot close an unused
// namespace.
func (a *arrivals) makeSandboxes(ctx context.Context) error {
	defer close(a.ready)
	for {
		select {
		case p := <-a.free:
			s, err := a.makeSandbox(ctx, p)
			if err != nil {
				a.free <- p // has room for all
			}
			select {
			case a.ready <- made{s, err}:
			case <-ctx.Done():
				if s != nil {
					return s.close()
				}
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// runTrial starts the pods of the trial and waits until they are removed. The first pod warms up.
func (a *arrivals) runTrial(ctx context.Context) error {
	sampler, err := proc.NewSampler()
	if err != nil {
		return err
	}
	cpus := a.node().CPUs
	a.runPod(ctx, thread.Monotonic(), int64(a.o.Timeout), nil)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.o.Opens(); err != nil {
		return err
	}
	before, err := sampler.Take(cpus)
	if err != nil {
		return err
	}
	used := thread.ProcessTreeCPUTime()
	begin := thread.Monotonic()
	end := begin + int64(a.o.Window)
	var pods sync.WaitGroup
	for k := 0; ; k++ {
		due := begin + int64((float64(k)+0.5)/a.o.Rate*1e9)
		if due >= end || !sleepUntil(ctx, due) {
			break
		}
		a.seen.Schedule.Due++
		pods.Go(func() { a.runPod(ctx, due, end-due, &a.seen) })
	}
	sleepUntil(ctx, end)
	after, err := sampler.Take(cpus)
	pods.Wait()
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return err
	}
	a.seen.ElapsedNs = int64(a.o.Window)
	a.seen.CPU.ThreadsNs = thread.ProcessTreeCPUTime() - used
	a.seen.CPU.ProcessNs = a.seen.CPU.ThreadsNs
	if d := proc.Delta(before, after); d != nil { // the other counters are those of the host's own network
		a.seen.Host = &sample.HostDelta{CPUs: d.CPUs, KsoftirqdNs: d.KsoftirqdNs, SpanNs: d.SpanNs, IdleNs: d.IdleNs, Tasks: d.Tasks}
	}
	return nil
}

// sleepUntil waits for a time of the monotonic clock. It returns false if ctx is done first.
func sleepUntil(ctx context.Context, at int64) bool {
	timer := time.NewTimer(time.Duration(at - thread.Monotonic()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runPod attaches one pod that is due at the time due, sends its request and removes it. It does nothing if no namespace is
// ready within patience, in ns. It adds the pod's times to o; o is nil for a pod that does not count.
func (a *arrivals) runPod(ctx context.Context, due, patience int64, o *sample.Observation) {
	late := time.NewTimer(time.Duration(patience))
	defer late.Stop()
	var m made
	select {
	case next, open := <-a.ready:
		if !open { // ctx has ended
			return
		}
		m = next
	case <-late.C:
		return
	case <-ctx.Done():
		return
	}
	if m.pod == nil {
		a.recordPod(o, nil, &failedPod{kindNamespace, m.err})
		return
	}
	// The thread ends with the goroutine, because it is confined.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		w := &podTimes{begin: due, last: due, parts: map[string]int64{}}
		err := thread.SetCPUs(a.node().CPUs)
		w.markNow(metric.WaitSchedule)
		if err == nil {
			err = a.servePod(ctx, m.pod, w)
		}
		if ctx.Err() == nil {
			a.recordPod(o, w, err)
		}
		a.endOnFailedRemoval(err, a.removePod(ctx, m.pod))
		a.free <- m.pod.Pod // has room for all
	}()
	<-done
}

// servePod attaches a pod and sends its request. A failure is a *failedPod.
func (a *arrivals) servePod(ctx context.Context, s *newPod, w *podTimes) error {
	if err := a.attachPod(ctx, s, w); err != nil {
		return &failedPod{kindAttach, err}
	}
	w.start = w.last
	err := a.sendRequest(ctx, s, w)
	var known *failedPod
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &failedPod{load.KindOf(err), err}
}

// failedPod is the error of a pod that got no answer. kind groups such errors.
type failedPod struct {
	kind string
	err  error
}

func (f *failedPod) Error() string { return f.err.Error() }
func (f *failedPod) Unwrap() error { return f.err }

// recordPod adds a pod to o as answered, or as failed if err is not nil. w is nil for a pod without a namespace. It does
// nothing if o is nil.
func (a *arrivals) recordPod(o *sample.Observation, w *podTimes, err error) {
	if o == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var seen sample.NewPod
	if w != nil {
		o.Schedule.Sent++
		o.Schedule.Lag.Record(w.parts[metric.WaitSchedule])
		seen = w.podSample()
	}
	if err != nil {
		kind := kindAttach
		var known *failedPod
		if errors.As(err, &known) {
			kind = known.kind
		}
		o.FailPod(kind, err.Error(), seen)
		return
	}
	o.AddPod(seen)
}

// endOnFailedRemoval ends the trial if removal, the error of removing a pod, is not nil. failed is why the pod got no
// answer; it is nil if the pod got one. The error of the trial has the kind of failed if that is a *failedPod,
// otherwise kindRemove.
func (a *arrivals) endOnFailedRemoval(failed, removal error) {
	if removal == nil {
		return
	}
	why := &control.Error{Kind: kindRemove, Message: removal.Error()}
	var known *failedPod
	if errors.As(failed, &known) {
		why = &control.Error{Kind: known.kind, Message: known.Error() + "; " + removal.Error()}
	}
	a.stop(why)
}

// trialObservation returns the observation of the trial. It fails if no pod got an answer.
func (a *arrivals) trialObservation() (*sample.Observation, error) {
	if a.seen.Operations > 0 {
		return &a.seen, nil
	}
	why := fmt.Sprintf("none of %d new pods got an answer", a.seen.Schedule.Due)
	switch {
	case a.seen.Pods.Failure != "":
		why += ": " + a.seen.Pods.Failure
	case a.seen.Schedule.Sent == 0:
		why += ": no namespace was ready in time"
	}
	return nil, &control.Error{Kind: a.seen.CommonError(control.KindNoTraffic), Message: why}
}
