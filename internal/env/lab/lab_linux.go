package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Options are the options of Up other than the profiles.
type Options struct {
	// Lab has the conditions; zero fields have their defaults.
	Lab plan.Lab
	// Backends lists numbers of backends, each once. For each number the lab has a pair of Services with that many
	// backends. (optional)
	Backends []int
	// Rolled lists numbers of backends in the same way. Roll removes backends of these Services and adds them again.
	// (optional)
	Rolled []int
	// NoBalancer omits the load balancer's addresses and the rules for them. (optional)
	NoBalancer bool
	// Account means that the cost of each instance's state is measured, while no other instance is raised.
	Account bool
	// Changed is the kind of object that AccountChange changes if the conditions have no churn; "" for none.
	Changed plan.ChurnKind
	// TestServices adds Services that only self-tests use.
	TestServices bool
	// Own are the profile files of profiles outside the catalogue. (optional)
	Own []plan.OwnSource
	// Program is the command line that starts an agent, for example {"/proc/self/exe", "agent"}. The program must
	// call Janitor for JanitorVerb and a path, and ServeSockets for SocketsVerb. It must call ServeWireGuard for
	// WireGuardVerb, a device and an MTU. Without a program, the lab cannot start agents or make sockets in a node's
	// cgroup.
	Program []string
	// Env is added to the agents' environment. (optional)
	Env []string
}

// Lab is a set of instances that exist at the same time.
type Lab struct {
	options Options
	// cpus are the CPUs that this program may use. place is how the nodes of the run share them.
	cpus    []int
	place   placement
	starter *netns.Starter
	groups  groups
	tools   tools

	// alone is held for writing while the cost of one instance's state is measured. It is held for reading while
	// other instances are raised.
	alone sync.RWMutex

	mu sync.Mutex
	// instances has one instance for each variant. Renew replaces them.
	instances []*Instance
	closed    bool
	agents    map[*agent]struct{}
	// unsteered is why receive work was not steered, nil if it was or need not be.
	unsteered error
}

// groups are the cgroups of a lab.
type groups struct {
	// tree is nil without cgroup v2; failed is then the reason.
	tree   *cgroup.Group
	failed error
	// janitor is nil if it could not be started.
	janitor *janitorProcess
}

// tools finds iptables and ipset once, when the first profile needs them.
type tools struct {
	iptables func() (*ipt.Tool, error)
	ipset    func() (*ipt.IPSet, error)
	// why is the reason for choosing iptables-legacy, "" for the usual choice.
	why string
}

// errClosed is the error of starting a process in a closed lab.
var errClosed = errors.New("the lab is closed")

// Up raises an instance of each variant. An instance that cannot be raised has Instance.Err set; the others are not
// affected. Up fails if the conditions are not valid, or if this machine lacks memory, descriptors or rights. It
// also fails if ctx is done. After a failure nothing is left. The caller closes the lab.
func Up(ctx context.Context, profiles []plan.Variant, o Options) (*Lab, error) {
	conditions := o.Lab.Filled()
	err := conditions.Validate()
	if err == nil {
		conditions, err = withBackendPods(conditions, o.backendSets())
	}
	if err != nil {
		return nil, err
	}
	left, where := memoryLeft()
	if err := errors.Join(checkMemory(conditions, profiles, left, where), raiseDescriptorLimit(conditions, profiles)); err != nil {
		return nil, err
	}
	o.Lab = conditions
	l, err := openEmptyLab(ctx, o)
	if err != nil {
		return nil, err
	}
	l.chooseIptables(ctx, profiles)
	l.instances = l.raiseAll(ctx, profiles)
	if err := ctx.Err(); err != nil {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("raise lab: %w", context.Cause(ctx)), l.Close(down))
	}
	return l, nil
}

// closeTimeout bounds closing a lab that was interrupted while it was raised.
const closeTimeout = 5 * time.Second

// openEmptyLab makes a lab without instances under complete conditions. It fails if this process may not make namespaces.
func openEmptyLab(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{options: o, agents: map[*agent]struct{}{}}
	if err := checkNamespaceRight(); err != nil {
		return nil, err
	}
	cpus, err := thread.CPUs()
	if err != nil {
		return nil, err
	}
	l.cpus, l.place = cpus, divideCPUs(o.Lab.CPU, cpus, o.Lab.Nodes)
	l.tools.iptables = sync.OnceValues(func() (*ipt.Tool, error) {
		return ipt.Find(context.WithoutCancel(ctx), ipt.Flavor(o.Lab.Iptables), o.Lab.Family == IPv6)
	})
	l.tools.ipset = sync.OnceValues(func() (*ipt.IPSet, error) { return ipt.FindIPSet(context.WithoutCancel(ctx)) })
	l.starter = netns.NewStarter()
	l.groups.failed = l.claimTree(ctx)
	return l, nil
}

// fewForNFT is the largest number of Services that iptables-nft loads in reasonable time. It is also the limit for
// policies in Calico's chains. The time grows with the square of the number: minutes for 10,000.
const fewForNFT = 2000

// chooseIptables makes the whole lab use iptables-legacy if a variant has more than fewForNFT Services or policies.
// It does nothing if the user chose a backend, or if iptables-legacy does not work. All variants use the same
// backend, so that they can be compared.
func (l *Lab) chooseIptables(ctx context.Context, profiles []plan.Variant) {
	c := l.options.Lab
	most, what := 0, ""
	note := func(n int, of string) {
		if n > most {
			most, what = n, of
		}
	}
	for _, v := range profiles {
		s, err := NewSpec(v, c)
		if err != nil {
			continue
		}
		if s.ServiceEngine() == condition.ProxyIptables {
			note(s.Lab.Services*max(1, s.Lab.Endpoints/2), "Services")
		}
		if s.Profile.Policy == "calico-iptables" {
			note(s.Lab.Policies+s.Lab.PoliciesUnselected, "policies")
		}
	}
	if c.Iptables != condition.IptablesAuto || most <= fewForNFT {
		return
	}
	legacy, err := ipt.Find(context.WithoutCancel(ctx), ipt.Legacy, c.Family == IPv6)
	if err != nil || legacy.Works(ctx) != nil {
		return
	}
	l.tools.why = fmt.Sprintf("iptables-nft takes minutes to program %d %s", most, what)
	l.tools.iptables = func() (*ipt.Tool, error) { return legacy, nil }
}

// checkNamespaceRight makes and closes a namespace. It returns an error with advice if this process may not make namespaces.
func checkNamespaceRight() error {
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		return advice.With(err, "run as root, or without root in a user namespace: unshare -Urnm cnibench ...")
	}
	if err != nil {
		return err
	}
	return ns.Close()
}

// raiseAll raises several variants concurrently. It returns their instances in the order of names.
func (l *Lab) raiseAll(ctx context.Context, names []plan.Variant) []*Instance {
	instances := make([]*Instance, len(names))
	// The kernel does most of the work under one lock, so more builders would only wait for each other.
	slots := make(chan struct{}, 2*runtime.NumCPU())
	var all sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{} // outside of the goroutine, so that they begin in order
		all.Go(func() {
			defer func() { <-slots }()
			instances[i] = l.raiseVariant(ctx, name)
		})
	}
	all.Wait()
	return instances
}

// raiseVariant raises the instance of a variant. On failure it returns an instance with Err set.
func (l *Lab) raiseVariant(ctx context.Context, name plan.Variant) *Instance {
	d, err := lookUpProfile(name.Profile(), l.options.Own)
	var spec instanceSpec
	if err == nil {
		spec, err = d.newSpec(name, l.options.Lab, l.options.backendSets())
	}
	if err != nil {
		return &Instance{Name: name, Err: err}
	}
	if l.options.NoBalancer {
		spec = spec.withoutBalancer()
	}
	if l.options.TestServices && len(spec.Services) > 0 {
		spec.Services = append(spec.Services, spec.testServices()...)
	}
	kind := l.churnKind(spec)
	if kind == plan.ChurnEndpoints || kind == plan.ChurnServices {
		spec.Services = append(spec.Services, serviceSpec{Name: churnService, VIP: spec.net.churned, Port: churnPort, TargetPort: churnPort, Backends: []PodRef{{1, 0}}})
	}
	inst, err := l.buildInstance(ctx, spec)
	if err == nil && kind != "" {
		if inst.changing, err = inst.prepareChanges(kind); err != nil {
			inst.close()
		}
	}
	if err != nil {
		return &Instance{Name: name, Profile: spec.Profile, Spec: spec, Err: err}
	}
	return inst
}

// Instances returns all instances in the order of the profiles given to Up, also those with an error.
func (l *Lab) Instances() []*Instance {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.instances)
}

// Instance returns the instance called name, or nil.
func (l *Lab) Instance(name plan.Variant) *Instance {
	for _, i := range l.Instances() {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// raisedInstance returns the instance called name. It fails if there is none or it was not raised.
func (l *Lab) raisedInstance(name plan.Variant) (*Instance, error) {
	inst := l.Instance(name)
	if inst == nil || inst.Err != nil {
		return nil, fmt.Errorf("profile %q is not up", name)
	}
	return inst, nil
}

// Endpoints returns the ends of a route. It fails with a *control.NotServedError if the variant has no such route.
// It fails with Instance.Err if the variant was not raised.
func (l *Lab) Endpoints(r plan.Route) (control.Ends, error) {
	inst := l.Instance(r.Variant)
	if inst == nil {
		return control.Ends{}, fmt.Errorf("profile %q is not in the lab", r.Variant)
	}
	if inst.Err != nil {
		return control.Ends{}, inst.Err
	}
	if r.Members > 0 {
		return l.jobEnds(inst, r)
	}
	ends, err := pairEnds(inst.Spec, r.Path, r.Pair)
	if err == nil && r.NewPods {
		err = inst.checkNewPods(r.Path)
	}
	if err != nil {
		return control.Ends{}, err
	}
	client, server := l.hostEndpoint(inst, ends.Client), l.hostEndpoint(inst, ends.Server)
	client.Address = inst.Host(ends.Client).Addr.String()
	ready, connected := inst.nicModelSteps(r, inst.Host(ends.Client), inst.Host(ends.Server))
	if r.Servers > 1 {
		servers, err := l.backendEndpoints(inst, r)
		return control.Ends{Client: client, Servers: servers, Ready: ready, Connected: connected}, err
	}
	server.Address, server.Port, server.ListenPort = ends.Address.String(), ends.Port, ends.ListenPort
	server.ListenAddress = inst.Host(ends.Server).Addr.String()
	return control.Ends{Client: client, Servers: []control.Endpoint{server}, Ready: ready, Connected: connected}, nil
}

// jobEnds returns the ends of a job: the first member is the client, the others are servers. Each listens at its own
// address.
func (l *Lab) jobEnds(inst *Instance, r plan.Route) (control.Ends, error) {
	names, err := memberNames(inst.Spec, r.Path, r.Members)
	if err != nil {
		return control.Ends{}, err
	}
	var all []control.Endpoint
	var hosts []*Host
	for _, name := range names {
		h := inst.Host(name)
		e := l.hostEndpoint(inst, name)
		e.Address, e.Port = h.Addr.String(), agentPort
		e.ListenAddress, e.ListenPort = e.Address, agentPort
		all, hosts = append(all, e), append(hosts, h)
	}
	ready, connected := inst.nicModelSteps(r, hosts...)
	return control.Ends{Client: all[0], Servers: all[1:], Ready: ready, Connected: connected}, nil
}

func (l *Lab) hostEndpoint(inst *Instance, name string) control.Endpoint {
	h := inst.Host(name)
	return control.Endpoint{
		Name: inst.Name.String() + "/" + name, CPUs: h.CPUs,
		Start: func(ctx context.Context) (io.ReadWriteCloser, error) {
			return l.startAgent(ctx, inst.Name.String()+"/"+name, h)
		},
	}
}

// Close ends every process of the lab and removes its cgroups and namespaces. The kernel removes devices and rules soon
// after. A second Close does nothing.
func (l *Lab) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	agents := l.agents
	l.agents = nil
	l.mu.Unlock()
	for a := range agents {
		a.killAndWait()
	}
	// In parallel, because plugins and daemons take their time.
	standing := slices.DeleteFunc(l.Instances(), func(i *Instance) bool { return i == nil })
	err := each.AtOnce(standing, func(_ int, i *Instance) error { return i.endOwnPrograms() })
	// All other processes end with the thread that started them.
	l.starter.Close()
	err = errors.Join(err, l.releaseTree(ctx))
	// In parallel, because the kernel waits for every CPU before it releases a program.
	var all sync.WaitGroup
	for _, i := range standing {
		all.Go(i.close)
	}
	all.Wait()
	return err
}

// VerifierLogs returns the logs of all profiles whose programs the BPF verifier rejected, by name. Instance.Err has
// only the last line.
func (l *Lab) VerifierLogs() map[string]string {
	logs := map[string]string{}
	for _, i := range l.Instances() {
		if log := attach.VerifierLog(i.Err); log != "" {
			logs[i.Name.String()] = log
		}
	}
	return logs
}
