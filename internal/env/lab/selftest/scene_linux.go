package selftest

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// nic is the device of nodes and pods that leads outside.
const nic = "eth0"

// scene is an instance under test, with its captures and what they observed.
type scene struct {
	inst *lab.Instance
	want expectation
	// wire captures on every device of the switch.
	wire *capture.Capture
	// pods capture at the pods that capturedPods returns.
	pods map[*lab.Pod]*capture.Capture
	// nodes capture on every device of the first two nodes; nil with neither BPF programs nor branch interfaces.
	nodes []*capture.Capture
	// dialers make connections from the clients' hosts.
	dialers map[*lab.Host]*lab.Dialer
	// trials has the traffic of the paths that must work.
	trials map[plan.Path]*trial
	// refusals has the outcomes of exchanges that must fail, by the ID of their checks.
	refusals map[string]outcome
	// unserved has the errors of calls to the Service without endpoints, by protocol.
	unserved map[string]error
	// tracks has the conntrack entries of each node after the trials.
	tracks   [][]conntrack.Entry
	trackErr error
	patience patience
}

// openScene empties the conntrack tables, then opens all captures and dialers. It makes no traffic. It fails if the lab has
// fewer than two nodes.
func openScene(inst *lab.Instance, want expectation) (*scene, error) {
	if len(inst.Nodes) < 2 || inst.Switch == nil {
		return nil, fmt.Errorf("%s has %d nodes, a self-test needs two and the switch between them", inst.Name, len(inst.Nodes))
	}
	s := &scene{
		inst: inst, want: want, patience: patience{next: longest},
		pods: map[*lab.Pod]*capture.Capture{}, dialers: map[*lab.Host]*lab.Dialer{},
		trials: map[plan.Path]*trial{}, refusals: map[string]outcome{}, unserved: map[string]error{},
	}
	if err := s.flushConntrack(); err != nil {
		return nil, err
	}
	var err error
	if s.wire, err = capture.Open(inst.Switch.NS, capture.Options{}); err != nil {
		return nil, fmt.Errorf("switch: %w", err)
	}
	for _, p := range s.capturedPods() {
		if s.pods[p], err = capture.Open(p.NS, capture.Options{Device: nic}); err != nil {
			delete(s.pods, p)
			return nil, errors.Join(fmt.Errorf("pod %s: %w", p.Name, err), s.close())
		}
	}
	if err := errors.Join(s.openNodeCaptures(), s.openDialers()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) openNodeCaptures() error {
	if s.want.Programs == nil && !s.want.Branches {
		return nil
	}
	for _, n := range s.inst.Nodes[:2] {
		c, err := capture.Open(n.NS, capture.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		s.nodes = append(s.nodes, c)
	}
	return nil
}

// openDialers makes a dialer for each client.
func (s *scene) openDialers() error {
	hosts := []*lab.Host{&s.inst.Nodes[0].Host, s.inst.External}
	if pod := s.podAt(0, 0); pod != nil {
		hosts = append(hosts, &pod.Host)
	}
	for _, h := range hosts {
		d, err := s.inst.Dialer(h)
		if err != nil {
			return err
		}
		s.dialers[h] = d
	}
	return nil
}

// capturedPods returns the pods whose traffic is captured: the servers of paths and, with BPF programs, the client. It omits
// host-network pods.
func (s *scene) capturedPods() []*lab.Pod {
	var pods []*lab.Pod
	seen := map[*lab.Pod]bool{}
	add := func(p *lab.Pod) {
		if p != nil && !p.HostNetwork && !seen[p] {
			seen[p] = true
			pods = append(pods, p)
		}
	}
	if s.want.Programs != nil {
		add(s.podAt(0, 0)) // the client, where no packets for Services may appear
	}
	add(s.podAt(0, 1))
	add(s.podAt(1, 0))
	for _, name := range []string{lab.LocalService, lab.RemoteService, lab.SelfService} {
		if svc := s.inst.Service(name); svc != nil {
			add(svc.Backends[0])
		}
	}
	return pods
}

// podAt returns a pod by its indices, or nil.
func (s *scene) podAt(node, index int) *lab.Pod {
	if pods := s.inst.Nodes[node].Pods; index < len(pods) {
		return pods[index]
	}
	return nil
}

// allPods returns the pods of all nodes without host-network pods.
func (s *scene) allPods() []*lab.Pod {
	var pods []*lab.Pod
	for _, n := range s.inst.Nodes {
		for _, p := range n.Pods {
			if !p.HostNetwork {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// close flushes conntrack and closes captures and dialers. The kernel waits a grace period for each packet socket, so
// they are closed in parallel.
func (s *scene) close() error {
	var dialers sync.WaitGroup
	defer dialers.Wait()
	for _, d := range s.dialers {
		dialers.Go(func() { _ = d.Close() }) // all exchanges are done
	}
	closed := each.AtOnce(s.allCaptures(), func(_ int, c *capture.Capture) error { return c.Close() })
	return errors.Join(closed, s.flushConntrack())
}

func (s *scene) allCaptures() []*capture.Capture {
	return slices.Concat([]*capture.Capture{s.wire}, s.nodes, slices.Collect(maps.Values(s.pods)))
}

func (s *scene) flushConntrack() error {
	var errs []error
	for _, n := range s.inst.Nodes {
		if err := conntrack.Flush(n.NS); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// describeAddr returns an address as text, followed by the name of its host if it is known.
func (s *scene) describeAddr(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	for _, p := range s.allPods() {
		if a == p.Addr {
			return fmt.Sprintf("%s (%s)", a, p.Name)
		}
	}
	for _, n := range s.inst.Nodes {
		switch {
		case a == n.Addr:
			return fmt.Sprintf("%s (%s)", a, n.Name)
		case a == n.TunnelAddr:
			return fmt.Sprintf("%s (tunnel of %s)", a, n.Name)
		case n.PodCIDR.IsValid() && (a == firstAddr(n.PodCIDR) || a == n.PodCIDR.Masked().Addr()):
			return fmt.Sprintf("%s (gateway of %s)", a, n.Name)
		}
	}
	if s.inst.External != nil && a == s.inst.External.Addr {
		return fmt.Sprintf("%s (external)", a)
	}
	return a.String()
}

func firstAddr(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// eachDevice calls fn for each device of a namespace, with a handle.
func eachDevice(ns *netns.NS, fn func(*link.Handle, link.Device) error) error {
	h, err := link.Open(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	list, err := h.Devices()
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := fn(h, d); err != nil {
			return err
		}
	}
	return nil
}

// routesIn returns the routes of a namespace without those of the kernel.
func routesIn(ns *netns.NS) ([]link.Route, error) {
	return link.At(ns, (*link.Handle).Routes)
}

// mustSegment reports whether devices must segment packets to the MTU: with the NIC model "wire".
func (s *scene) mustSegment() bool { return s.inst.Spec.Lab.NIC == plan.NICWire }

// podMTU returns the MTU of pods.
func (s *scene) podMTU() int { return s.inst.Spec.PodMTU() }

// pathMTU returns the length of the longest packet of a pod that reaches another node unfragmented, in bytes.
func (s *scene) pathMTU() int { return min(s.podMTU(), s.inst.Spec.TunnelMTU()) }

// maxFrameLength returns the length of the largest frame on the underlay, in bytes.
func (s *scene) maxFrameLength() int { return s.inst.Spec.Lab.MTU + ethernetHeader }
