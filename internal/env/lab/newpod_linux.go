package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab/own"
	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// waits are the parts of a time to first response, by the names in package metric. They add up to it.
type waits struct {
	begin, last int64
	parts       map[string]int64
}

func newWaits(begin int64) *waits {
	return &waits{begin: begin, last: begin, parts: map[string]int64{}}
}

// mark adds the time since the previous mark to a part.
func (w *waits) mark(part string) {
	now := thread.Monotonic()
	w.parts[part] += now - w.last
	w.last = now
}

// whole returns the time from the begin to the last mark.
func (w *waits) whole() int64 { return w.last - w.begin }

// newPod is a pod that is made while it is measured: a namespace with open handles, and no device yet.
type newPod struct {
	dataplane.Pod
	ns *netns.NS
	// at is where the pod is attached: its node or the switch. in is the pod.
	at, in   *link.Handle
	resolver *link.Resolver
	socket   *os.File
	// attached, ruled and programmed say what has begun and has to be undone.
	attached, ruled, programmed bool
}

// sandbox makes the namespace of a pod and all that its attachment needs, as a container runtime does before it calls a CNI
// plugin.
func (a *arrivals) sandbox(ctx context.Context, p dataplane.Pod) (*newPod, error) {
	s := &newPod{Pod: p}
	err := func() (err error) {
		if s.ns, err = netns.New(); err != nil {
			return err
		}
		if s.in, err = link.Open(s.ns); err != nil {
			return err
		}
		if err := errors.Join(sysctl.Set(s.ns, a.inst.Spec.fresh()), s.in.Up(link.Loopback)); err != nil {
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
		s.socket, err = a.dialer.Open(ctx, a.network(), s.ns)
		return err
	}()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("namespace of %s: %w", p.Name, err), s.close())
	}
	return s, nil
}

// close drops what sandbox opened.
func (s *newPod) close() error {
	err := s.hangUp()
	s.resolver.Close()
	s.at.Close()
	s.in.Close()
	return errors.Join(err, s.ns.Close())
}

// hangUp closes the pod's connection, which its device must still carry.
func (s *newPod) hangUp() error {
	if s.socket == nil {
		return nil
	}
	err := s.socket.Close()
	s.socket = nil
	return err
}

// add attaches a pod as the dataplane's CNI plugin and its agents do.
func (a *arrivals) add(ctx context.Context, s *newPod, w *waits) error {
	spec := a.inst.Spec
	if spec.Plugged() {
		return a.plug(ctx, s, w)
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
		w.mark(waitOf(t))
		return err
	})
	if err != nil {
		return err
	}
	if a.rules.Calico != nil {
		s.ruled = true
		err := a.felix(ctx, func(devices []string) []string { return append(slices.Clone(devices), s.HostDevice) })
		w.mark(metric.WaitRule)
		if err != nil {
			return err
		}
	}
	return a.program(s, w)
}

// plug attaches a pod by the plugins of a profile file, whose ADD is one part of the time. The plugins of a node run for one
// pod at a time.
func (a *arrivals) plug(ctx context.Context, s *newPod, w *waits) error {
	a.agent.Lock()
	defer a.agent.Unlock()
	left := a.left(w)
	if left <= 0 || ctx.Err() != nil {
		return fmt.Errorf("ADD of %s did not begin within %s: the plugins were busy with other pods", s.Name, a.o.Timeout)
	}
	ctx, stop := context.WithTimeout(ctx, left)
	defer stop()
	s.attached = true
	at, err := a.node().own.Add(ctx, own.Pod{Name: s.Name, NS: s.ns})
	w.mark(metric.WaitDevice)
	s.Addr, s.HostDevice = at.Addr, ""
	return err
}

// waitOf says which part of the time a thing belongs to.
func waitOf(t link.Thing) string {
	switch t.(type) {
	case link.Address:
		return metric.WaitAddress
	case link.Route:
		return metric.WaitRoute
	}
	return metric.WaitDevice
}

// program tells the programs of all nodes of a pod.
func (a *arrivals) program(s *newPod, w *waits) error {
	programs := a.node().programs.Pods
	if programs == nil {
		return nil
	}
	s.programmed = true
	err := programs.Add(s.Pod)
	w.mark(metric.WaitRule)
	if err != nil {
		return err
	}
	err = programs.Police(s.Pod)
	if err == nil {
		err = a.others(func(p *dataplane.PodPrograms) error { return p.Learn(a.inst.Spec.Nodes[0], s.Pod) })
	}
	w.mark(metric.WaitPolicy)
	return err
}

// others calls do for the programs of all other nodes that have to learn of pods.
func (a *arrivals) others(do func(*dataplane.PodPrograms) error) error {
	for _, n := range a.inst.Nodes[1:] {
		if p := n.programs.Pods; p != nil && p.Learn != nil {
			if err := do(p); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// felix makes Calico's agent write the rules for other pods. There is one agent on a node, which does one thing at a time.
func (a *arrivals) felix(ctx context.Context, change func(devices []string) []string) error {
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

// left returns the time in which a pod has to get its answer.
func (a *arrivals) left(w *waits) time.Duration {
	return a.o.Timeout - time.Duration(thread.Monotonic()-w.begin)
}

// request sends the pod's first request.
func (a *arrivals) request(ctx context.Context, s *newPod, w *waits) error {
	left := func() time.Duration { return max(a.left(w), time.Millisecond) }
	err := s.resolver.Resolve(a.hop, left())
	w.mark(metric.WaitResolution)
	if err != nil {
		return err
	}
	fd := int(s.socket.Fd())
	defer context.AfterFunc(ctx, func() { sock.Shutdown(fd) })()
	if err := sock.SetTimeouts(fd, left()); err != nil {
		return err
	}
	to := sock.NewAddr(a.to, sock.Family(a.to.Addr()))
	e := uninterrupted(func() (int, syscall.Errno) { return 0, sock.ConnectPolite(fd, &to) })
	w.mark(metric.WaitConnect)
	if e != 0 && e != syscall.EISCONN {
		return os.NewSyscallError("connect", e)
	}
	err = exchange(fd, left())
	w.mark(metric.WaitAnswer)
	return err
}

// exchange sends a byte and waits for one, which it leaves unread: closing the socket then resets the connection at both ends.
func exchange(fd int, limit time.Duration) error {
	if err := sock.SetTimeouts(fd, limit); err != nil {
		return err
	}
	b := []byte{0}
	if _, e := sock.Send(fd, b, 0); e != 0 {
		return os.NewSyscallError("send", e)
	}
	n := 0
	e := uninterrupted(func() (_ int, e syscall.Errno) { n, e = sock.RecvPolite(fd, b, sock.Peek); return n, e })
	switch {
	case e != 0:
		return os.NewSyscallError("recv", e)
	case n == 0:
		return fmt.Errorf("recv: %w", errors.Join(io.EOF, syscall.ECONNRESET))
	}
	return nil
}

// uninterrupted repeats a call that a signal has cut short.
func uninterrupted(call func() (int, syscall.Errno)) syscall.Errno {
	for {
		if _, e := call(); e != syscall.EINTR {
			return e
		}
	}
}

// removeTime bounds the removal of a pod.
const removeTime = 20 * time.Second

// remove detaches a pod as the plugin's DEL and the agents do, and ends its namespace.
func (a *arrivals) remove(ctx context.Context, s *newPod) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer stop()
	err := s.hangUp()
	if s.programmed {
		p := a.node().programs.Pods
		err = errors.Join(p.Remove(s.Pod), a.others(func(p *dataplane.PodPrograms) error { return p.Forget(a.inst.Spec.Nodes[0], s.Pod) }))
	}
	if s.ruled {
		err = errors.Join(err, a.felix(ctx, func(devices []string) []string {
			return slices.DeleteFunc(slices.Clone(devices), func(d string) bool { return d == s.HostDevice })
		}))
	}
	if s.attached {
		err = errors.Join(err, a.detach(ctx, s))
	}
	if err = errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("remove %s: %w", s.Name, err)
	}
	return nil
}

// detach removes the pod's devices, and what its node and its peer have learned of it.
func (a *arrivals) detach(ctx context.Context, s *newPod) error {
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
		_, forgot := link.At(ns, func(h *link.Handle) (struct{}, error) { return struct{}{}, h.ForgetNeighbour(s.Addr.Addr()) })
		err = errors.Join(err, forgot)
	}
	return err
}

// network is that of the pods' sockets.
func (a *arrivals) network() string {
	if a.to.Addr().Is6() {
		return "tcp6"
	}
	return "tcp4"
}

// nextHop returns the address whose way out of a new pod is that of its first packet: with sockets that translate Services
// that of a backend.
func (a *arrivals) nextHop(server netip.Addr) netip.Addr {
	if a.inst.Profile.Services == ebpfServices {
		return server
	}
	return a.to.Addr()
}
