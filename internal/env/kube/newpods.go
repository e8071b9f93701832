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
	// reportLimit bounds the wait for a pod's report after the timeout of its request has passed. The kubelet looks for
	// ended containers every second.
	reportLimit = 10 * time.Second
	// removeLimit bounds the removal of a pod.
	removeLimit = 30 * time.Second
	// removeAgain is the time between two requests to remove the same pod.
	removeAgain = 5 * time.Second
	// clockReadings is how many times the clock of a node is read. Only the reading with the shortest round trip is used.
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
	// Network is when the container runtime had attached the pod to the network, Begin when this program began.
	Network, Begin int64
	// Connected is when the connection of the successful attempt was established, Answered when its response came.
	Connected, Answered int64
	// Dials is the number of attempts, DialNs the CPU time in ns of the thread that made them.
	Dials  int
	DialNs int64
	// Kind is the kind of the error if no response came, otherwise "". Failure is the message of the error.
	Kind, Failure string
}

// arrivals makes the new pods of one trial.
type arrivals struct {
	control.Arrivals
	c *Cluster
	// ahead is how far the node's clock is ahead of this machine's clock. Its error is at most doubt.
	ahead, doubt time.Duration
	// room is a semaphore: it has an element for each existing pod, at most mostNewPods.
	room chan struct{}

	mu sync.Mutex
	// pods has the pods of the trial by name, seen the observation of the pods that have reported.
	pods map[string]*arrival
	seen sample.Observation
	// failed is the error of a pod that could not be removed, nil if there is none.
	failed error
}

// arrival is the state of one new pod, as the API server shows it.
type arrival struct {
	// changed receives a value after each change.
	changed chan struct{}
	// scheduled is when this machine first saw that the pod has a node.
	scheduled time.Time
	// last is the newest state of the pod, nil before the first. gone means that the pod is deleted.
	last *corev1.Pod
	gone bool
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
	w, err := a.startWatch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch the pods: %w", withAdvice(withCause(ctx, err)))
	}
	watched := make(chan struct{})
	go func() { defer close(watched); a.watchPods(ctx, w) }()
	err = a.runTrial(ctx)
	stop()
	<-watched
	if err = errors.Join(err, a.failed); err != nil {
		return nil, err
	}
	return a.trialObservation()
}

// runTrial creates the pods of the trial and waits until they are gone.
func (a *arrivals) runTrial(ctx context.Context) error {
	a.runPod(ctx, time.Now(), nil) // warms up; afterwards the image is on the node
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
			pods.Go(func() { defer func() { <-a.room }(); a.runPod(ctx, due, &a.seen) })
		default: // the maximum number of pods exists: the rate is not reached
		}
	}
	pods.Wait()
	a.seen.ElapsedNs = int64(a.Window)
	return context.Cause(ctx)
}

// runPod creates a pod, waits for its report and removes it. due is when the pod should have been created. runPod records
// the result in o, unless o is nil or ctx has ended.
func (a *arrivals) runPod(ctx context.Context, due time.Time, o *sample.Observation) {
	p := a.newPodObject()
	now := &arrival{changed: make(chan struct{}, 1)}
	a.mu.Lock()
	a.pods[p.Name] = now
	a.mu.Unlock()
	lag := time.Since(due)
	_, err := a.c.client.Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		err = &control.Error{Kind: kindCreate, Message: fmt.Sprintf("create pod %s: %v", p.Name, withPodAdvice(p.Name, withCause(ctx, err)))}
	}
	var first First
	if err == nil {
		first, err = a.awaitReport(ctx, p.Name, now, due)
	}
	if ctx.Err() == nil {
		a.recordPod(o, lag, a.podTimes(now, due, first), err)
	}
	a.removePod(ctx, p, now)
}

// newPodObject returns a new pod to create. It is like the run's other pods, but its program sends one request, dialling
// until it is answered, and then ends.
func (a *arrivals) newPodObject() *corev1.Pod {
	name := newPod + strings.ToLower(RunID())
	p := podObject(a.c.identity, a.c.options, podSpec{Name: name, Node: a.c.place.client})
	p.Spec.ActiveDeadlineSeconds = new(int64((a.Timeout + reportLimit).Seconds()))
	p.Spec.SecurityContext.Sysctls = nil
	agent := &p.Spec.Containers[0]
	agent.Args = []string{"hold", "--first", "--for", a.Timeout.String(), net.JoinHostPort(a.To.Address, strconv.Itoa(a.To.Port))}
	agent.Env = nil
	return p
}

// awaitReport waits for a pod's report of its first request and returns it. It fails if the pod does not start, ends without a
// report, or is late, and if the request failed.
func (a *arrivals) awaitReport(ctx context.Context, name string, now *arrival, due time.Time) (First, error) {
	late := time.NewTimer(time.Until(due.Add(a.Timeout + reportLimit)))
	defer late.Stop()
	for {
		select {
		case <-now.changed:
		case <-late.C:
			return First{}, &control.Error{Kind: kindTimeout, Message: fmt.Sprintf("pod %s has not reported within %s: %s", name, a.Timeout+reportLimit, a.podStateText(ctx, name, now))}
		case <-ctx.Done():
			return First{}, context.Cause(ctx)
		}
		a.mu.Lock()
		p, gone := now.last, now.gone
		a.mu.Unlock()
		if gone {
			return First{}, &control.Error{Kind: kindStart, Message: podGoneMessage(name)}
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

// podStateText describes the state of a pod that has not reported, with its last warning event.
func (a *arrivals) podStateText(ctx context.Context, name string, now *arrival) string {
	a.mu.Lock()
	p := now.last
	a.mu.Unlock()
	if p == nil {
		return "the API server does not show it"
	}
	ask, stop := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer stop()
	said := a.c.unreadyMessage(ask, p, api.StateOf(p).Why)
	if warning := api.LastWarning(ask, a.c.client, p.Namespace, name); warning != "" {
		said += "; " + warning
	}
	return said
}

// podTimes returns how long a pod took from the time when it was due, in total and in parts. The pod was scheduled at a time
// of this machine's clock. All later times are of the node's clock; podTimes converts them to this machine's clock. Start,
// the time from the start of the pod's program to the answer, needs no conversion.
func (a *arrivals) podTimes(now *arrival, due time.Time, first First) sample.NewPod {
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

// recordPod adds the result of a pod to o; it does nothing if o is nil. The pod counts as failed if err is not nil, or if
// its answer came after the timeout or before the pod was due.
func (a *arrivals) recordPod(o *sample.Observation, lag time.Duration, seen sample.NewPod, err error) {
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

// removePod deletes a pod and waits until it is gone or ctx ends. If the pod still exists after removeLimit, it sets a.failed.
func (a *arrivals) removePod(ctx context.Context, p *corev1.Pod, now *arrival) {
	// The deletion begins even if the run is interrupted; the namespace is then deleted, too.
	request := func() error {
		ask, stop := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer stop()
		return a.c.client.Pods(p.Namespace).Delete(ask, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
	}
	err := request()
	late, again := time.NewTimer(removeLimit), time.NewTicker(removeAgain)
	defer late.Stop()
	defer again.Stop()
	for gone := apierrors.IsNotFound(err); !gone && ctx.Err() == nil; {
		select {
		case <-again.C: // the first request may have failed, or a broken watch missed the end
			err = request()
			gone = apierrors.IsNotFound(err)
		case <-now.changed:
			a.mu.Lock()
			gone = now.gone
			a.mu.Unlock()
		case <-ctx.Done():
		case <-late.C:
			a.mu.Lock()
			a.failed = &control.Error{Kind: kindRemove, Message: fmt.Sprintf("pod %s is not gone after %s%s", p.Name, removeLimit, lastErrorText(err))}
			a.mu.Unlock()
			return
		}
	}
}

// lastErrorText returns the text of a request's last error after a colon, "" for nil.
func lastErrorText(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// watchPods stores the changes that w reports until ctx ends. If the watch breaks, it begins a new one, which first reports
// the state of all existing pods.
func (a *arrivals) watchPods(ctx context.Context, w watch.Interface) {
	again := time.NewTicker(beat)
	defer again.Stop()
	for ctx.Err() == nil {
		for open := w != nil; open && ctx.Err() == nil; {
			select {
			case event, more := <-w.ResultChan():
				if p, ok := event.Object.(*corev1.Pod); ok {
					a.storeChange(p, event.Type == watch.Deleted)
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
		w, _ = a.startWatch(ctx) // the next turn tries again
	}
}

// startWatch begins a watch of the run's pods.
func (a *arrivals) startWatch(ctx context.Context) (watch.Interface, error) {
	return a.c.client.WatchPods(ctx, a.c.namespace(false), LabelRun+"="+a.c.run)
}

// storeChange stores the state of a pod of this trial and signals the change.
func (a *arrivals) storeChange(p *corev1.Pod, gone bool) {
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

// trialObservation returns the observation of the trial's pods. It fails if no pod got an answer.
func (a *arrivals) trialObservation() (*sample.Observation, error) {
	if a.seen.Operations > 0 {
		return &a.seen, nil
	}
	return nil, &control.Error{Kind: a.seen.CommonError(control.KindNoTraffic), Message: fmt.Sprintf("none of %d new pods got an answer: %s", a.seen.Schedule.Due, a.seen.Pods.Failure)}
}

// readClock reads the clock of a pod's node by exec. ahead is how far it is ahead of this machine's clock; its error is at
// most doubt.
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
