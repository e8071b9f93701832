package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// mostNewPods bounds the new pods that exist at the same time.
	mostNewPods = 32
	// newPod is the prefix of the names of new pods.
	newPod = "new-"
	// reportLimit bounds the wait for the report of a pod that has its answer: kubelet looks for ended containers every
	// second.
	reportLimit = 10 * time.Second
	// removeLimit bounds the removal of a pod.
	removeLimit = 30 * time.Second
	// clockReadings is how often the clock of a node is read. Only the reading with the shortest round trip is used.
	clockReadings = 12
)

// Kinds of errors of a new pod, in addition to those of its connection.
const (
	kindCreate  = "not created"
	kindStart   = "not started"
	kindRemove  = "not removed"
	kindTimeout = "timeout"
	kindClock   = "clock"
)

// First is a new pod's report of its first request. Times are of its node's clock, in ns since 1970; 0 is unknown.
type First struct {
	// Network is when the container runtime had connected the pod, Begin when this program began. Connected is when the
	// connection was established and Answered when the response came, both of the attempt that was answered first.
	Network, Begin, Connected, Answered int64
	// Dials is the number of attempts, DialNs the CPU time of the thread that made them.
	Dials  int
	DialNs int64
	// Kind and Failure are why there was no response.
	Kind, Failure string
}

// arrivals makes the new pods of one trial.
type arrivals struct {
	control.Arrivals
	c *Cluster
	// ahead is how far the node's clock is ahead of this machine's, plus or minus doubt.
	ahead, doubt time.Duration
	// room has an element for each existing pod, at most mostNewPods.
	room chan struct{}

	mu   sync.Mutex
	pods map[string]*arrival
	seen sample.Observation
	// failed is why a pod could not be removed.
	failed error
}

// arrival is one new pod as the API server shows it.
type arrival struct {
	// changed has a value after each change.
	changed   chan struct{}
	scheduled time.Time
	last      *corev1.Pod
	gone      bool
}

// NewPods creates pods on the client's node at a rate. Each dials a server until one request is answered, and reports
// its times in its termination message. NewPods returns when all pods are removed. It fails if no pod got an answer, or
// if a pod could not be removed.
func (c *Cluster) NewPods(ctx context.Context, o control.Arrivals) (*sample.Observation, error) {
	a := &arrivals{Arrivals: o, c: c, room: make(chan struct{}, mostNewPods), pods: map[string]*arrival{}, seen: sample.NewPods(control.SideClient, o.Timeout, sample.AttachedByPlugins)}
	var err error
	if a.ahead, a.doubt, err = c.readClock(ctx, podClient); err != nil {
		return nil, err
	}
	a.seen.Pods.ClockNs = int64(a.doubt)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := a.follow(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch the pods: %w", withAdvice(cause(ctx, err)))
	}
	watched := make(chan struct{})
	go func() { defer close(watched); a.watch(ctx, w) }()
	err = a.run(ctx)
	stop()
	<-watched
	if err = errors.Join(err, a.failed); err != nil {
		return nil, err
	}
	return a.observed()
}

// run creates the pods of the trial and waits until they are gone.
func (a *arrivals) run(ctx context.Context) error {
	a.pod(ctx, time.Now(), nil) // warms up; afterwards the image is on the node
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.Opens(); err != nil {
		return err
	}
	begin := time.Now()
	var pods sync.WaitGroup
	for k := 0; ; k++ {
		due := begin.Add(time.Duration((float64(k) + 0.5) / a.Rate * 1e9))
		timer := time.NewTimer(time.Until(due))
		if due.Sub(begin) >= a.Window {
			break
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			pods.Wait()
			return context.Cause(ctx)
		}
		a.seen.Schedule.Due++
		select {
		case a.room <- struct{}{}:
			pods.Go(func() { defer func() { <-a.room }(); a.pod(ctx, due, &a.seen) })
		default: // the maximum number of pods exists: the rate is not reached
		}
	}
	pods.Wait()
	a.seen.ElapsedNs = int64(a.Window)
	return context.Cause(ctx)
}

// pod creates the pod that was due at the given time, waits for its report and removes it. It records the result in o,
// unless o is nil.
func (a *arrivals) pod(ctx context.Context, due time.Time, o *sample.Observation) {
	p := a.object()
	now := &arrival{changed: make(chan struct{}, 1)}
	a.mu.Lock()
	a.pods[p.Name] = now
	a.mu.Unlock()
	lag := time.Since(due)
	_, err := a.c.client.Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		err = &control.Error{Kind: kindCreate, Message: fmt.Sprintf("create pod %s: %v", p.Name, withPodAdvice(p.Name, cause(ctx, err)))}
	}
	var first First
	if err == nil {
		first, err = a.report(ctx, p.Name, now, due)
	}
	if ctx.Err() == nil {
		a.note(o, lag, a.saw(now, due, first), err)
	}
	a.remove(ctx, p, now)
}

// object returns a pod like the run's other pods, whose program dials until one request is answered, and ends.
func (a *arrivals) object() *corev1.Pod {
	name := newPod + strings.ToLower(RunID())
	p := podObject(a.c.identity, a.c.options, podSpec{Name: name, Node: a.c.place.client})
	p.Spec.ActiveDeadlineSeconds = new(int64((a.Timeout + reportLimit).Seconds()))
	p.Spec.SecurityContext.Sysctls = nil
	agent := &p.Spec.Containers[0]
	agent.Args = []string{"hold", "--first", "--for", a.Timeout.String(), net.JoinHostPort(a.To.Address, strconv.Itoa(a.To.Port))}
	agent.Env = nil
	return p
}

// report returns a pod's report of its first request, or why there is none.
func (a *arrivals) report(ctx context.Context, name string, now *arrival, due time.Time) (First, error) {
	late := time.NewTimer(time.Until(due.Add(a.Timeout + reportLimit)))
	defer late.Stop()
	for {
		select {
		case <-now.changed:
		case <-late.C:
			return First{}, &control.Error{Kind: kindTimeout, Message: fmt.Sprintf("pod %s has not reported within %s: %s", name, a.Timeout+reportLimit, a.state(ctx, name, now))}
		case <-ctx.Done():
			return First{}, context.Cause(ctx)
		}
		a.mu.Lock()
		p, gone := now.last, now.gone
		a.mu.Unlock()
		if gone {
			return First{}, &control.Error{Kind: kindStart, Message: podGone(name)}
		}
		for _, s := range p.Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil {
				return readFirst(p.Name, t)
			}
		}
		if s := api.StateOf(p); s.Hopeless {
			return First{}, &control.Error{Kind: kindStart, Message: "pod " + name + ": " + s.Why}
		}
	}
}

// readFirst reads the report of a container that has ended. It fails if there is none, or if the request failed.
func readFirst(name string, t *corev1.ContainerStateTerminated) (First, error) {
	var first First
	if err := json.Unmarshal([]byte(t.Message), &first); err != nil {
		return first, &control.Error{Kind: kindStart, Message: fmt.Sprintf("pod %s ended with code %d and no report: %s", name, t.ExitCode, strings.TrimSpace(t.Reason+" "+t.Message))}
	}
	if first.Kind != "" {
		return first, &control.Error{Kind: first.Kind, Message: "pod " + name + ": " + first.Failure}
	}
	return first, nil
}

// state describes the state of a pod that has not reported, with its last warning event.
func (a *arrivals) state(ctx context.Context, name string, now *arrival) string {
	a.mu.Lock()
	p := now.last
	a.mu.Unlock()
	if p == nil {
		return "the API server does not show it"
	}
	ask, stop := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer stop()
	said := a.c.describe(ask, p, api.StateOf(p).Why)
	if warning := api.LastWarning(ask, a.c.client, p.Namespace, name); warning != "" {
		said += "; " + warning
	}
	return said
}

// saw returns the times of a pod since it was due. The time from the start of its program uses only its node's clock. The
// scheduler's part uses this machine's clock; the other parts use the node's clock, corrected to this machine's.
func (a *arrivals) saw(now *arrival, due time.Time, first First) sample.NewPod {
	here := func(ns int64) time.Time { return time.Unix(0, ns).Add(-a.ahead) }
	end := here(first.Answered)
	parts, last := map[string]int64{}, due
	mark := func(part string, at time.Time) {
		if at.After(end) {
			at = end
		}
		if at.After(last) {
			parts[part] += int64(at.Sub(last))
			last = at
		}
	}
	a.mu.Lock()
	scheduled := now.scheduled
	a.mu.Unlock()
	if !scheduled.IsZero() {
		mark(metric.WaitSchedule, scheduled)
	}
	if begin := here(first.Begin); first.Network > 0 && here(first.Network).Before(begin) {
		mark(metric.WaitSandbox, here(first.Network))
	}
	mark(metric.WaitContainer, here(first.Begin))
	mark(metric.WaitConnect, here(first.Connected))
	mark(metric.WaitAnswer, end)
	seen := sample.NewPod{Start: first.Answered - first.Begin, Parts: parts, Dials: first.Dials, DialNs: first.DialNs}
	for _, ns := range parts {
		seen.Whole += ns
	}
	return seen
}

// note counts a pod in o: as failed if err is not nil, or if its answer came after the timeout or before it was due.
func (a *arrivals) note(o *sample.Observation, lag time.Duration, seen sample.NewPod, err error) {
	if o == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o.Schedule.Sent++
	o.Schedule.Lag.Record(int64(lag))
	whole := seen.Whole
	if err == nil && whole > int64(a.Timeout) {
		err = &control.Error{Kind: kindTimeout, Message: fmt.Sprintf("the answer came %s after the pod was due", time.Duration(whole).Round(time.Millisecond))}
	}
	if err == nil && whole <= 0 {
		err = &control.Error{Kind: kindClock, Message: "the answer came before the pod was due: the clock of its node was set meanwhile"}
	}
	var why *control.Error
	if errors.As(err, &why) {
		o.FailPod(why.Kind, why.Message, seen)
		return
	}
	o.AddPod(seen)
}

// remove deletes a pod and waits until it is gone. If it is not gone after removeLimit, it sets a.failed.
func (a *arrivals) remove(ctx context.Context, p *corev1.Pod, now *arrival) {
	// The deletion begins even if the run is interrupted; the namespace is then deleted, too.
	ask, stop := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer stop()
	err := a.c.client.Pods(p.Namespace).Delete(ask, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
	late := time.NewTimer(removeLimit)
	defer late.Stop()
	for gone := apierrors.IsNotFound(err); !gone && ctx.Err() == nil; {
		select {
		case <-now.changed:
			a.mu.Lock()
			gone = now.gone
			a.mu.Unlock()
		case <-ctx.Done():
		case <-late.C:
			a.mu.Lock()
			a.failed = &control.Error{Kind: kindRemove, Message: fmt.Sprintf("pod %s is not gone after %s", p.Name, removeLimit)}
			a.mu.Unlock()
			return
		}
	}
}

// watch follows the run's pods until ctx ends. A watch that breaks is restarted with the state of all pods.
func (a *arrivals) watch(ctx context.Context, w watch.Interface) {
	again := time.NewTicker(beat)
	defer again.Stop()
	for ctx.Err() == nil {
		for open := w != nil; open && ctx.Err() == nil; {
			select {
			case event, more := <-w.ResultChan():
				if p, ok := event.Object.(*corev1.Pod); ok {
					a.changed(p, event.Type == watch.Deleted)
				}
				open = more
			case <-ctx.Done():
			}
		}
		if w != nil {
			w.Stop()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		w, _ = a.follow(ctx) // the next turn tries again
	}
}

// follow begins a watch of the run's pods.
func (a *arrivals) follow(ctx context.Context) (watch.Interface, error) {
	return a.c.client.WatchPods(ctx, a.c.namespace(false), LabelRun+"="+a.c.run)
}

// changed stores the state of a pod of this trial and signals the change.
func (a *arrivals) changed(p *corev1.Pod, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.pods[p.Name]
	if now == nil {
		return
	}
	if now.last, now.gone = p, gone; now.scheduled.IsZero() && p.Spec.NodeName != "" {
		now.scheduled = time.Now()
	}
	select {
	case now.changed <- struct{}{}:
	default:
	}
}

// observed returns the observations of the pods. It fails if none got an answer.
func (a *arrivals) observed() (*sample.Observation, error) {
	if a.seen.Operations > 0 {
		return &a.seen, nil
	}
	return nil, &control.Error{Kind: a.seen.CommonError(control.KindNoTraffic), Message: fmt.Sprintf("none of %d new pods got an answer: %s", a.seen.Schedule.Due, a.seen.Pods.Failure)}
}

// readClock returns how far the clock of a pod's node is ahead of this machine's, plus or minus doubt.
func (c *Cluster) readClock(ctx context.Context, pod string) (ahead, doubt time.Duration, err error) {
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	in, ask := io.Pipe()
	answer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.exec(ctx, pod, []string{program, "hold", "--clock"}, remotecommand.StreamOptions{Stdin: in, Stdout: out})
		_ = out.CloseWithError(io.EOF)
		_ = in.CloseWithError(io.ErrClosedPipe)
		ended <- err
	}()
	lines := json.NewDecoder(answer)
	for i := range clockReadings {
		before := time.Now()
		var there int64
		if _, err = ask.Write([]byte("\n")); err == nil {
			err = lines.Decode(&there)
		}
		if err != nil {
			stop()
			return 0, 0, fmt.Errorf("read the clock of the node of pod %s: %w", pod, errors.Join(<-ended, err))
		}
		after := time.Now()
		if half := after.Sub(before) / 2; i == 0 || half < doubt {
			ahead, doubt = time.Unix(0, there).Sub(before.Add(half)), half
		}
	}
	_ = ask.Close() // ends the program
	return ahead, doubt, <-ended
}
