package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/engine/first"
	"github.com/cnibench/cnibench/internal/env/lab/own"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// podTimes has the times of one pod until its first response, in ns of the monotonic clock.
type podTimes struct {
	// begin is when the pod is due. last is the time of the last mark (see markAt), at first begin.
	begin, last int64
	// start is when the program of the pod began, after its attachment; 0 if it did not begin.
	start int64
	// parts has the durations in ns between the marks, by metric name. They add up to last - begin.
	parts map[string]int64
	// dialled is the result of the attempts to connect.
	dialled first.Result
}

// markNow adds the time since the previous mark to a part.
func (w *podTimes) markNow(part string) { w.markAt(part, thread.Monotonic()) }

// markAt adds the time from the previous mark to at, the new mark, to a part. It does nothing if at is not after the
// previous mark.
func (w *podTimes) markAt(part string, at int64) {
	if at > w.last {
		w.parts[part] += at - w.last
		w.last = at
	}
}

// podSample returns the times of the pod up to the last mark.
func (w *podTimes) podSample() sample.NewPod {
	return sample.NewPod{Whole: w.last - w.begin, Start: w.last - w.start, Parts: w.parts, Dials: w.dialled.Dials, DialNs: w.dialled.CPUNs}
}

// newPod is a pod for the measurement: a namespace with open handles. It gets its device when attachPod attaches it.
type newPod struct {
	dataplane.Pod
	ns *netns.NS
	// at is a handle of the namespace where the pod is attached: its node or the switch. in is a handle of ns.
	at, in   *link.Handle
	resolver *link.Resolver
	// sockets are open and unused, for the next attempts to connect.
	sockets []*os.File
	// attached is set before devices are added, ruled before Felix's chains are written, programmed before BPF
	// programs are updated. removePod undoes only the parts whose field is set.
	attached, ruled, programmed bool
}

// makeSandbox makes the namespace of a pod and everything that its attachment needs. A container runtime does the
// same before it calls a CNI plugin.
func (a *arrivals) makeSandbox(ctx context.Context, p dataplane.Pod) (*newPod, error) {
	s := &newPod{Pod: p}
	err := func() (err error) {
		if s.ns, err = netns.New(); err != nil {
			return err
		}
		if s.in, err = link.Open(s.ns); err != nil {
			return err
		}
		if err := errors.Join(netns.SetSysctls(s.ns, a.inst.Spec.namespaceSettings()), s.in.Up(link.Loopback)); err != nil {
			return err
		}
		where := a.node().NS
		if _, switched := a.inst.Spec.dataplane.(dataplane.Switched); switched {
			where = a.inst.Switch.NS
		}
		if s.at, err = link.Open(where); err != nil {
			return err
		}
		if s.resolver, err = link.NewResolver(s.ns); err != nil {
			return err
		}
		s.sockets, err = a.openSockets(ctx, s.ns, 1)
		return err
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("namespace of %s: %w", p.Name, err), s.close())
	}
	return s, nil
}

// close closes what makeSandbox opened, and the namespace with it.
func (s *newPod) close() error {
	for _, f := range s.sockets {
		_ = f.Close() // nothing was written to it
	}
	s.resolver.Close()
	s.at.Close()
	s.in.Close()
	return s.ns.Close()
}

// attachPod attaches a pod as the dataplane's CNI plugin does. It also makes those changes of agents for which a
// plugin waits. It adds the times to w. After an error, removePod undoes what was done.
func (a *arrivals) attachPod(ctx context.Context, s *newPod, w *podTimes) error {
	spec := a.inst.Spec
	if spec.Plugged() {
		return a.attachByPlugins(ctx, s, w)
	}
	things := func() []link.Thing {
		if d, ok := spec.dataplane.(dataplane.Switched); ok {
			return d.PlugPod(switchBridge, s.Pod, s.in)
		}
		return spec.dataplane.AttachPod(spec.Nodes[0], s.Pod, s.in)
	}()
	s.attached = true
	err := s.at.Each(things, func(at *link.Handle, t link.Thing) error {
		err := at.Add(t)
		w.markNow(waitMetric(t))
		return err
	})
	if err != nil {
		return err
	}
	return a.programPod(s, w)
}

// startFelix starts to write the chains of a pod as Felix does. The returned function waits for the end of the
// writing. It returns the time of that end in ns of the monotonic clock, or 0 for a profile without such chains.
// Calico's plugin does not wait for Felix, so the program of the pod begins meanwhile. Its packets are dropped
// until the chains are complete.
func (a *arrivals) startFelix(ctx context.Context, s *newPod) func() (at int64, err error) {
	if a.rules.Calico == nil {
		return func() (int64, error) { return 0, nil }
	}
	s.ruled = true
	var at int64
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, because it is confined
		err := thread.SetCPUs(a.node().CPUs)
		if err == nil {
			err = a.writeChains(ctx, func(devices []string) []string { return append(slices.Clone(devices), s.HostDevice) })
		}
		at = thread.Monotonic()
		done <- err
	}()
	return func() (int64, error) { err := <-done; return at, err }
}

// attachByPlugins attaches a pod by the plugins of a profile file. Their ADD is one part of the time. The plugins
// of a node run for one pod at a time. attachByPlugins fails if they are busy until the timeout.
func (a *arrivals) attachByPlugins(ctx context.Context, s *newPod, w *podTimes) error {
	a.agent.Lock()
	defer a.agent.Unlock()
	left := a.timeLeft(w)
	if left <= 0 || ctx.Err() != nil {
		return fmt.Errorf("ADD of %s did not begin within %s: the plugins were busy with other pods", s.Name, a.o.Timeout)
	}
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	s.attached = true
	at, err := a.node().own.Add(ctx, own.Pod{Name: s.Name, NS: s.ns})
	w.markNow(metric.WaitDevice)
	s.Addr, s.HostDevice = at.Addr, ""
	return err
}

// waitMetric returns the metric to which the time for adding t counts.
func waitMetric(t link.Thing) string {
	switch t.(type) {
	case link.Address:
		return metric.WaitAddress
	case link.Route:
		return metric.WaitRoute
	}
	return metric.WaitDevice
}

// programPod adds a pod to the BPF programs and maps of all nodes. It does nothing for a dataplane without programs.
func (a *arrivals) programPod(s *newPod, w *podTimes) error {
	programs := a.node().programs.Pods
	if programs == nil {
		return nil
	}
	s.programmed = true
	err := programs.Add(s.Pod)
	w.markNow(metric.WaitRule)
	if err != nil {
		return err
	}
	err = programs.Police(s.Pod)
	if err == nil {
		err = a.updateOtherNodes(func(p *dataplane.PodPrograms) error { return p.Learn(a.inst.Spec.Nodes[0], s.Pod) })
	}
	w.markNow(metric.WaitPolicy)
	return err
}

// updateOtherNodes calls do for the programs of each other node that must learn the pod, until one call fails.
func (a *arrivals) updateOtherNodes(do func(*dataplane.PodPrograms) error) error {
	for _, n := range a.inst.Nodes[1:] {
		if p := n.programs.Pods; p != nil && p.Learn != nil {
			if err := do(p); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// writeChains changes the node's chains for other pods, as Calico's agent Felix does. change gets the host devices of the
// present pods and returns the new ones. A node has one agent, so one change is made at a time.
func (a *arrivals) writeChains(ctx context.Context, change func(devices []string) []string) error {
	a.agent.Lock()
	defer a.agent.Unlock()
	before, after := *a.rules.Calico, *a.rules.Calico
	after.Devices = change(before.Devices)
	tool, err := a.inst.lab.tools.iptables()
	if err != nil {
		return err
	}
	if err := tool.Change(ctx, a.node().NS, policy.PodChange(before, after), a.node().CPUs...); err != nil {
		return err
	}
	a.rules.Calico.Devices = after.Devices
	return nil
}

// timeLeft returns the time that a pod has left to get its answer.
func (a *arrivals) timeLeft(w *podTimes) time.Duration {
	return a.o.Timeout - time.Duration(thread.Monotonic()-w.begin)
}

// sendRequest sends the pod's first request, while Felix may still write its chains, and waits for the answer. It fails if
// the answer does not arrive within the timeout, or if Felix fails.
func (a *arrivals) sendRequest(ctx context.Context, s *newPod, w *podTimes) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rule := a.startFelix(ctx, s)
	// A next hop that does not answer yet is not an error: each attempt resolves it again.
	_ = s.resolver.Resolve(a.hop, max(a.timeLeft(w), time.Millisecond))
	w.markNow(metric.WaitResolution)
	end := w.begin + int64(a.o.Timeout)
	seen, err := first.Request(ctx, first.Options{To: a.to, Begin: w.start, End: end, Open: func() (*os.File, error) { return a.nextSocket(ctx, s) }})
	ruled, failed := rule()
	w.dialled = seen
	if failed != nil {
		return &failedPod{kindAttach, failed}
	}
	if err != nil {
		return err
	}
	w.markAt(metric.WaitRule, min(ruled, seen.Connected))
	w.markAt(metric.WaitConnect, seen.Connected)
	w.markAt(metric.WaitAnswer, seen.Answered)
	if w.last > end {
		return os.NewSyscallError("recv", syscall.ETIMEDOUT)
	}
	return nil
}

// ahead is how many sockets a pod opens at a time after its first attempt to connect has failed.
const ahead = 16

// nextSocket returns an unused socket of the pod for an attempt to connect. It opens more if none is left.
func (a *arrivals) nextSocket(ctx context.Context, s *newPod) (*os.File, error) {
	if len(s.sockets) == 0 {
		var err error
		if s.sockets, err = a.openSockets(ctx, s.ns, ahead); err != nil {
			return nil, err
		}
	}
	f := s.sockets[0]
	s.sockets = s.sockets[1:]
	return f, nil
}

// openSockets opens up to n TCP sockets in a namespace. If the dialer's process must open them, it opens only one.
// It fails if it opens none.
func (a *arrivals) openSockets(ctx context.Context, ns *netns.NS, n int) ([]*os.File, error) {
	if a.dialer.client != nil {
		f, err := a.dialer.client.Open(ctx, a.tcpNetwork(), ns)
		if err != nil {
			return nil, err
		}
		return []*os.File{f}, nil
	}
	var files []*os.File
	err := ns.Do(func() error {
		for range n {
			fd, e := sock.Socket(sock.Family(a.to.Addr()), sock.Stream, 0)
			if e != 0 {
				return os.NewSyscallError("socket", e)
			}
			files = append(files, os.NewFile(uintptr(fd), "socket"))
		}
		return nil
	})
	if len(files) > 0 {
		err = nil // fewer sockets than requested are enough
	}
	return files, err
}

// removeTime bounds the removal of a pod.
const removeTime = 20 * time.Second

// removePod detaches a pod as the plugin's DEL and the agents do, and closes its namespace. It does so even if ctx is
// done, within removeTime.
func (a *arrivals) removePod(ctx context.Context, s *newPod) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer stop()
	var err error
	if s.programmed {
		p := a.node().programs.Pods
		err = errors.Join(p.Remove(s.Pod), a.updateOtherNodes(func(p *dataplane.PodPrograms) error { return p.Forget(a.inst.Spec.Nodes[0], s.Pod) }))
	}
	if s.ruled {
		err = errors.Join(err, a.writeChains(ctx, func(devices []string) []string {
			return slices.DeleteFunc(slices.Clone(devices), func(d string) bool { return d == s.HostDevice })
		}))
	}
	if s.attached {
		err = errors.Join(err, a.detachPod(ctx, s))
	}
	if err = errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("remove %s: %w", s.Name, err)
	}
	return nil
}

// detachPod removes the pod's devices, and the neighbour entries for it at its node and at the server.
func (a *arrivals) detachPod(ctx context.Context, s *newPod) error {
	var err error
	if a.inst.Spec.Plugged() {
		a.agent.Lock()
		defer a.agent.Unlock()
		err = a.node().own.Del(ctx, own.Pod{Name: s.Name, NS: s.ns})
	} else if s.HostDevice != "" {
		err = s.at.Remove(s.HostDevice)
	} else {
		err = s.in.Remove(dataplane.NIC)
	}
	for _, ns := range []*netns.NS{a.node().NS, a.server} {
		err = errors.Join(err, link.In(ns, func(h *link.Handle) error { return h.ForgetNeighbour(s.Addr.Addr()) }))
	}
	return err
}

// tcpNetwork returns the name of the network of the pods' sockets: "tcp4" or "tcp6".
func (a *arrivals) tcpNetwork() string {
	if a.to.Addr().Is6() {
		return "tcp6"
	}
	return "tcp4"
}

// nextHop returns the address to which a new pod sends its first packet. This is the address that the pod dials, or
// the server's if BPF programs translate Services in the socket.
func (a *arrivals) nextHop(server netip.Addr) netip.Addr {
	if a.inst.Profile.Services == ebpfServices {
		return server
	}
	return a.to.Addr()
}
