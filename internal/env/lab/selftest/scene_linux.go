package selftest

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
)

// nic is the name of the device that a node, and a pod, has towards the outside.
const nic = "eth0"

// scene is a profile under observation.
type scene struct {
	inst *lab.Instance
	want expectation
	// wire sees every device of the switch.
	wire *capture.Capture
	// pods see what reaches those that serve; a pod of the host network is not among them.
	pods map[*lab.Pod]*capture.Capture
	// nodes see every device of the first two nodes, where programs move packets; nil otherwise.
	nodes []*capture.Capture
	// dialers make connections where the clients are.
	dialers map[*lab.Host]*lab.Dialer
	// trials are the paths that should work, refusals those that should not.
	trials   map[plan.Path]*trial
	refusals map[plan.Path]outcome
	// tracks are the connections that each node knew after the trials; untold is why they are not known.
	tracks [][]conntrack.Entry
	untold error
	// tool reads netfilter's counters; it is found when first needed.
	tool *ipt.Tool
	// patience is how long the next exchange may take.
	patience time.Duration
}

// open opens every capture before there is any traffic.
func open(inst *lab.Instance, want expectation) (*scene, error) {
	if len(inst.Nodes) < 2 || inst.Switch == nil {
		return nil, fmt.Errorf("%s has %d nodes, a self-test needs two and the switch between them", inst.Name, len(inst.Nodes))
	}
	s := &scene{
		inst: inst, want: want, patience: patience,
		pods: map[*lab.Pod]*capture.Capture{}, dialers: map[*lab.Host]*lab.Dialer{}, trials: map[plan.Path]*trial{}, refusals: map[plan.Path]outcome{},
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	var err error
	if s.wire, err = capture.Open(inst.Switch.NS, capture.Options{}); err != nil {
		return nil, fmt.Errorf("switch: %w", err)
	}
	for _, p := range s.servers() {
		if s.pods[p], err = capture.Open(p.NS, capture.Options{Device: nic}); err != nil {
			delete(s.pods, p)
			return nil, errors.Join(fmt.Errorf("pod %s: %w", p.Name, err), s.close())
		}
	}
	if err := errors.Join(s.watchNodes(), s.openDialers()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) watchNodes() error {
	if s.want.Programs == nil {
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

// openDialers makes a dialer for everybody who is a client.
func (s *scene) openDialers() error {
	hosts := []*lab.Host{&s.inst.Nodes[0].Host, s.inst.External}
	if pod := s.pod(0, 0); pod != nil {
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

// servers are the pods of a network of their own that some path ends at, each once.
func (s *scene) servers() []*lab.Pod {
	var pods []*lab.Pod
	seen := map[*lab.Pod]bool{}
	add := func(p *lab.Pod) {
		if p != nil && !p.HostNetwork && !seen[p] {
			seen[p] = true
			pods = append(pods, p)
		}
	}
	if s.want.Programs != nil {
		add(s.pod(0, 0)) // the client, on whose device no Service may be seen
	}
	add(s.pod(0, 1))
	add(s.pod(1, 0))
	for _, name := range []string{lab.LocalService, lab.RemoteService, lab.SelfService} {
		if svc := s.inst.Service(name); svc != nil {
			add(svc.Backends[0])
		}
	}
	return pods
}

// pod returns a pod by its place, nil if there are not so many.
func (s *scene) pod(node, index int) *lab.Pod {
	if pods := s.inst.Nodes[node].Pods; index < len(pods) {
		return pods[index]
	}
	return nil
}

// allPods are the pods of all nodes that have a network of their own.
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

// close forgets the connections and ends the captures. The kernel lets a grace period pass for each packet socket that
// it closes, so they are closed side by side.
func (s *scene) close() error {
	captures := append([]*capture.Capture{s.wire}, s.nodes...)
	for _, c := range s.pods {
		captures = append(captures, c)
	}
	errs := make([]error, len(captures)+1)
	var wg sync.WaitGroup
	for _, d := range s.dialers {
		wg.Go(func() { _ = d.Close() }) // its process is of no more use, however it ends
	}
	for i, c := range captures {
		wg.Go(func() { errs[i] = c.Close() })
	}
	errs[len(captures)] = s.flush()
	wg.Wait()
	return errors.Join(errs...)
}

func (s *scene) flush() error {
	var errs []error
	for _, n := range s.inst.Nodes {
		if err := conntrack.Flush(n.NS); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// who names an address for a reader.
func (s *scene) who(a netip.Addr) string {
	if !a.IsValid() {
		return "nobody"
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
		case n.PodCIDR.IsValid() && a == firstOf(n.PodCIDR):
			return fmt.Sprintf("%s (gateway of %s)", a, n.Name)
		}
	}
	if s.inst.External != nil && a == s.inst.External.Addr {
		return fmt.Sprintf("%s (external)", a)
	}
	return a.String()
}

func firstOf(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// devices reads the devices of a namespace and hands each to fn, with a handle for more questions.
func devices(ns *netns.NS, fn func(*link.Handle, link.Device) error) error {
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

// device returns one device of a namespace.
func device(ns *netns.NS, name string) (link.Device, error) {
	var found *link.Device
	err := devices(ns, func(_ *link.Handle, d link.Device) error {
		if d.Name == name {
			found = &d
		}
		return nil
	})
	if err != nil {
		return link.Device{}, err
	}
	if found == nil {
		return link.Device{}, fmt.Errorf("no device %s", name)
	}
	return *found, nil
}

// routes returns the routes of a namespace that somebody added.
func routes(ns *netns.NS) ([]link.Route, error) {
	h, err := link.Open(ns)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.Routes()
}

// segmented says whether the devices must cut packets to the MTU themselves.
func (s *scene) segmented() bool { return s.inst.Spec.Lab.NIC == "wire" }

// podMTU is the MTU that leaves room for the profile's overhead on the underlay of this lab.
func (s *scene) podMTU() int {
	return s.inst.Spec.Lab.MTU - s.inst.Profile.OverheadOn(s.inst.Spec.Lab.Family)
}

// fullFrame is the length of the largest frame on the underlay.
func (s *scene) fullFrame() int { return s.inst.Spec.Lab.MTU + ethernetHeader }
