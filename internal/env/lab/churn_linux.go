package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// churnService is the Service that changes under churn, the last of the instance. It is raised with one endpoint, a pod
// on the second node; see specInForm for its other form.
const (
	churnService = "svc-churn"
	churnPort    = 5301
)

// churnKind returns the kind of object that changes in an instance. This is Churn.Of of the conditions. If that is
// "" and Options.Account is set, it is Options.Changed. churnKind returns "" if neither is set or the instance has
// no such object. It also returns "" if a change for AccountChange would take minutes.
func (l *Lab) churnKind(s instanceSpec) plan.ChurnKind {
	kind := s.Lab.Churn.Of
	if kind == "" && l.options.Account {
		kind = l.options.Changed
		if kind == plan.ChurnPolicies && s.Lab.Policies > fewForNFT && !l.changesFast(s) {
			return ""
		}
	}
	if kind.Unchanged(s.Profile, s.Lab) != "" {
		return ""
	}
	return kind
}

// changesFast reports whether one change among very many policies takes reasonable time. With iptables-nft it would
// take minutes.
func (l *Lab) changesFast(s instanceSpec) bool {
	if s.Profile.Policy != "calico-iptables" {
		return true
	}
	tool, err := l.tools.iptables()
	return err == nil && tool.Flavor != ipt.NFT
}

// form is one of the two forms of the object that changes: as raised, or changed.
type form int

const (
	asRaised form = iota
	changed
)

// changes are the actions of an instance's nodes that turn an object from one form into the other.
type changes struct {
	inst *Instance
	kind plan.ChurnKind
	// to has for each form the action of each node that leads to this form.
	to [2][]func(context.Context) error
	// at is the present form. broken is the error that left the object in neither form.
	at     form
	broken error
}

// prepareChanges prepares the actions for one kind of object. It computes netfilter rules in advance, so that
// changeForm only loads them.
func (i *Instance) prepareChanges(kind plan.ChurnKind) (*changes, error) {
	c := &changes{inst: i, kind: kind}
	for k := range i.Nodes {
		for _, f := range []form{asRaised, changed} {
			do, err := i.nodeChange(kind, k, f)
			if err != nil {
				return nil, fmt.Errorf("%s: changes of %s: %w", i.Nodes[k].Name, kind, err)
			}
			c.to[f] = append(c.to[f], do)
		}
	}
	return c, nil
}

// nodeChange returns the action of node k that brings the object into form to, from the other form.
func (i *Instance) nodeChange(kind plan.ChurnKind, k int, to form) (func(context.Context) error, error) {
	if kind == plan.ChurnPolicies {
		return i.policyChange(k, to)
	}
	n, from := i.Nodes[k], i.specInForm(kind, 1-to)
	target := i.specInForm(kind, to)
	if i.Profile.Services == FileServices {
		return func(ctx context.Context) error { return n.runServiceCommands(ctx, target, k) }, nil
	}
	if n.programs.Serve != nil {
		list := churnedServices(target.proxyServices(k))
		if len(list) == 0 {
			gone := churnedServices(from.proxyServices(k))
			return func(context.Context) error { return n.programs.Withdraw(gone) }, nil
		}
		return func(context.Context) error { return n.programs.Serve(list) }, nil
	}
	before, after := from.Netfilter(k), target.Netfilter(k)
	switch {
	case after.ProxyIPVS:
		return func(context.Context) error { return serveIPVS(n.NS, *after.Services) }, nil
	case after.ProxyNFT:
		for _, c := range []*service.Config{before.Services, after.Services} {
			c.Services = churnedServices(c.Services)
		}
		return i.nftChange(k, service.NFTables(*before.Services), service.NFTables(*after.Services))
	}
	return i.iptablesChange(k, before, after, service.EverySync...)
}

// policyChange returns the action by which node k creates the policy of churn (changed) or deletes it (asRaised).
func (i *Instance) policyChange(k int, to form) (func(context.Context) error, error) {
	if deny := i.Nodes[k].programs.Deny; deny != nil {
		return func(context.Context) error { return deny(to == changed) }, nil
	}
	before, after := i.Spec.Netfilter(k), i.Spec.Netfilter(k)
	if before.Calico == nil {
		return nil, errors.New("the profile has no agent that changes policies")
	}
	before.Calico.Churned, after.Calico.Churned = to == asRaised, to == changed
	if after.Calico.NFTables {
		return i.nftChange(k, policy.CalicoNFT(*before.Calico), policy.CalicoNFT(*after.Calico))
	}
	return i.iptablesChange(k, before, after)
}

// nftChange returns an action that turns a table of node k from before into after by one netlink transaction.
func (i *Instance) nftChange(k int, before, after *nft.Table) (func(context.Context) error, error) {
	p, err := nft.Difference(before, after)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return p.Commit(i.Nodes[k].NS) }, nil
}

// iptablesChange returns an action that changes the iptables rules of node k by one run of iptables-restore --noflush.
// The run rewrites the changed chains and the chains named in whole.
func (i *Instance) iptablesChange(k int, before, after policy.Node, whole ...string) (func(context.Context) error, error) {
	tool, err := i.lab.tools.iptables()
	if err != nil {
		return nil, err
	}
	from, _ := before.Ruleset()
	to, _ := after.Ruleset()
	text := ruleset.Change(from, to, whole...)
	return func(ctx context.Context) error {
		return tool.Change(ctx, i.Nodes[k].NS, text, i.Nodes[k].daemonCPUs()...)
	}, nil
}

// daemonCPUs returns the CPUs of the node's daemons: CPUs without load if there are any.
func (n *Node) daemonCPUs() []int {
	if len(n.aside) > 0 {
		return n.aside
	}
	return n.CPUs
}

// specInForm returns the instance's description with churnService in form f. In the form changed, the Service does
// not exist if kind is services. For any other kind, its endpoint is on the first node.
func (i *Instance) specInForm(kind plan.ChurnKind, f form) instanceSpec {
	s := i.Spec
	if f == asRaised {
		return s
	}
	s.Services = slices.Clone(s.Services)
	at := slices.IndexFunc(s.Services, func(svc serviceSpec) bool { return svc.Name == churnService })
	if kind == plan.ChurnServices {
		s.Services = slices.Delete(s.Services, at, at+1)
	} else {
		s.Services[at].Backends = []PodRef{{0, 0}}
	}
	return s
}

// churnedServices returns the entries of list for churnService.
func churnedServices(list []service.Service) []service.Service {
	return slices.DeleteFunc(slices.Clone(list), func(s service.Service) bool { return s.Name != churnService })
}

// changeTime bounds one change.
const changeTime = time.Minute

// changeForm brings the object into a form on all nodes concurrently. It returns the CPU time of the change in ns. It
// does not stop when ctx is done, because a partial change leaves neither form. After a failure, every later call
// fails.
func (c *changes) changeForm(ctx context.Context, to form) (cpu int64, err error) {
	if c.broken != nil {
		return 0, c.broken
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
	defer stop()
	children := thread.ChildrenCPUTime()
	own := make([]int64, len(c.inst.Nodes))
	err = each.AtOnce(c.inst.Nodes, func(k int, n *Node) error {
		runtime.LockOSThread() // the thread ends with the goroutine, because it is confined
		if err := thread.SetCPUs(n.daemonCPUs()); err != nil {
			return err
		}
		began := thread.CPUTime()
		if err := c.to[to][k](ctx); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		own[k] = thread.CPUTime() - began
		return nil
	})
	if err != nil {
		c.broken = fmt.Errorf("change %s: %w", c.kind, err)
		return 0, c.broken
	}
	c.at = to
	cpu = thread.ChildrenCPUTime() - children
	for _, ns := range own {
		cpu += ns
	}
	return cpu, nil
}

// watchedRate bounds how many changes per second are probed. The number of changes between two probed ones is even, so
// that both directions are probed.
const watchedRate = 10

// Churn changes an object of a variant at the rate of its conditions; see env.Churner. At the end it restores the
// object. It returns nil if nothing changes.
func (l *Lab) Churn(ctx context.Context, o control.Churning) (seen *sample.Churn, err error) {
	inst, err := l.raisedInstance(o.Variant)
	if err != nil {
		return nil, err
	}
	c := inst.changing
	if c == nil || inst.Spec.Lab.Churn.IsZero() {
		return nil, nil
	}
	p, err := c.openProber(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	seen, err = c.runTrial(ctx, o, p)
	if c.at == changed && c.broken == nil {
		_, restored := c.changeForm(ctx, asRaised)
		err = errors.Join(err, restored)
	}
	return seen, err
}

// runTrial makes the changes of one trial, and returns the number and the times of those in its window.
func (c *changes) runTrial(ctx context.Context, o control.Churning, p *prober) (*sample.Churn, error) {
	rate := c.inst.Spec.Lab.Churn.Rate
	every := int(math.Ceil(rate/watchedRate)) | 1
	seen := &sample.Churn{Enforced: sample.NewHistogram()}
	begins := thread.Monotonic()
	opens := begins + int64(o.Warmup)
	ends := opens + int64(o.Window)
	for k := 0; ; k++ {
		due := begins + int64((float64(k)+0.5)/rate*1e9)
		if due >= ends {
			return seen, context.Cause(ctx)
		}
		if due >= opens {
			seen.Due++
		}
		if !sleepUntil(ctx, due) {
			return seen, context.Cause(ctx)
		}
		begin := thread.Monotonic()
		if begin >= ends {
			continue // the remaining changes are due but not made
		}
		one, err := c.changeOnce(ctx, p, k%every == 0)
		if err != nil {
			return seen, err
		}
		if begin >= opens {
			seen.Made++
			seen.AppliedNs += one.applied
			seen.CPUNs += one.cpu
			seen.Probes += uint64(one.probes)
			if one.enforced > 0 {
				seen.Enforced.Record(one.enforced)
			}
		}
	}
}

// oneChange has the times of a change in ns; enforced is 0 for a change that was not probed.
type oneChange struct {
	applied, cpu, enforced int64
	probes                 int
}

// changeOnce brings the object into its other form. With look, it also measures when packets first follow the change.
func (c *changes) changeOnce(ctx context.Context, p *prober, look bool) (one oneChange, err error) {
	to := 1 - c.at
	begin := thread.Monotonic()
	applied := make(chan error, 1)
	var ended int64
	go func() {
		cpu, err := c.changeForm(ctx, to)
		one.cpu, ended = cpu, thread.Monotonic()
		applied <- err
	}()
	if look {
		one.enforced, one.probes, err = p.probeChange(begin, c.expectedSign(to), applied)
	} else {
		err = <-applied
	}
	one.applied = ended - begin
	return one, err
}

// expectedSign returns how a connection attempt ends while the object is in form f.
func (c *changes) expectedSign(f form) sign {
	switch {
	case f == asRaised:
		return opened
	case c.kind == plan.ChurnEndpoints:
		return refused
	}
	return closed
}

// probeTarget returns the address that the prober connects to. The second result is the port on which the pod of
// the second node listens.
func (c *changes) probeTarget() (netip.AddrPort, uint16) {
	s := c.inst.Spec
	if c.kind == plan.ChurnPolicies {
		return netip.AddrPortFrom(s.Nodes[1].Pods[0].Addr.Addr(), policy.ChurnedPort), policy.ChurnedPort
	}
	return netip.AddrPortFrom(s.net.churned, churnPort), churnPort
}

// accounted is how many changes AccountChange makes. If they take longer than accountTime, it makes fewer, always
// an even number.
const (
	accounted   = 6
	accountTime = 5 * time.Second
)

// AccountChange changes one object several times. It sets two values in Raised, in ns. They are the median delay
// until a change is enforced and the mean CPU time of a change. It does nothing without Options.Account or an
// object that changes. It also does nothing if the conditions have delay or loss, which would distort the probes.
// Run self-tests first, because changes may increase the drop counters.
func (i *Instance) AccountChange(ctx context.Context) (err error) {
	c := i.changing
	if i.Err != nil || c == nil || !i.lab.options.Account || i.Spec.Lab.Impaired() {
		return nil
	}
	p, err := c.openProber(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	began := time.Now()
	var delays []int64
	var cpu float64
	for len(delays) < accounted && time.Since(began) < accountTime || len(delays)%2 == 1 {
		one, err := c.changeOnce(ctx, p, true)
		if err != nil {
			return fmt.Errorf("one change of %s: %w", c.kind, err)
		}
		delays = append(delays, one.enforced)
		cpu += float64(one.cpu)
	}
	slices.Sort(delays)
	n := len(delays)
	i.Raised[metric.StateChange] = float64(delays[n/2-1]+delays[n/2]) / 2
	i.Raised[metric.StateChangeCPU] = cpu / float64(n)
	return nil
}
