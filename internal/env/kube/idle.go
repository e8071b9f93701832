package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// restPoll is the time between two readings while waiting for a sample. It is long, because each reading costs the
	// kubelet CPU time.
	restPoll = 5 * time.Second
	// sampleLimit bounds the wait for a kubelet's next sample, which comes every 10 to 20 s.
	sampleLimit = 40 * time.Second
)

// kindNoSample is the kind of the error if a node's kubelet provides no new sample.
const kindNoSample = "no sample"

// Names of the parts of a node that are not daemons of the network.
const (
	ownPods   = "this run"
	otherPods = "other pods"
)

// Rest measures the CPU time and memory that the nodes of a route use during window, while the run sends nothing. It uses two
// samples of each kubelet: the first that is taken after Rest was called, and the first that is taken at least window
// later. Their times are those in the kubelets' samples.
func (c *Cluster) Rest(ctx context.Context, r plan.Route, window time.Duration) (*sample.Observation, error) {
	at, err := c.NodesOf(r)
	if err != nil {
		return nil, err
	}
	nodes := make([]sample.NodeRest, len(at))
	errs := make([]error, len(at))
	var all sync.WaitGroup
	for i, name := range at {
		all.Go(func() {
			w := restWatch{node: name, own: []string{c.namespace(false), c.namespace(true)}, read: c.client.Summary, poll: restPoll, limit: sampleLimit}
			nodes[i], errs[i] = w.measure(ctx, window)
		})
	}
	all.Wait()
	o := &sample.Observation{Side: control.SideClient}
	for i := range nodes {
		if errs[i] != nil {
			return nil, errs[i]
		}
		nodes[i].Side = []string{control.SideClient, control.SideServer}[i]
		if span := nodes[i].Whole.SpanNs; i == 0 || span < o.ElapsedNs {
			o.ElapsedNs = span
		}
	}
	o.Rest = nodes
	return o, nil
}

// restWatch measures one node by the counters of its kubelet.
type restWatch struct {
	node string
	// own are the namespaces of the run.
	own []string
	// read returns the summary of a node's kubelet.
	read func(ctx context.Context, node string) ([]byte, error)
	// poll is the time between readings. limit bounds the wait for a sample, in addition to the window.
	poll, limit time.Duration
}

// counter holds the counters of a container, or of the node, in one sample.
type counter struct {
	// part is the name of the part of the node to which the container's usage is added.
	part string
	// network means that the part is a daemon of the network.
	network bool
	at      time.Time
	// cpuNs is the CPU time in ns since the container or the node started, memory the working set in bytes.
	cpuNs  uint64
	memory uint64
}

// whole is the key of the node's own counter.
const whole = ""

// measure returns what the node and its parts use between two samples that are at least window apart.
func (w restWatch) measure(ctx context.Context, window time.Duration) (sample.NodeRest, error) {
	before, err := w.readCounters(ctx)
	if err != nil {
		return sample.NodeRest{}, err
	}
	first, err := w.awaitSamples(ctx, before, 0)
	if err != nil {
		return sample.NodeRest{}, err
	}
	last, err := w.awaitSamples(ctx, first, window)
	if err != nil {
		return sample.NodeRest{}, err
	}
	return w.usageBetween(before, first, last), nil
}

// awaitSamples waits for span, then reads until each counter in since has a newer sample, at least span later. It returns
// these samples by the keys of since. A counter without such a sample within the limit is omitted; if it is the node's own
// counter, awaitSamples fails.
func (w restWatch) awaitSamples(ctx context.Context, since map[string]counter, span time.Duration) (map[string]counter, error) {
	late := time.NewTimer(span + w.limit)
	defer late.Stop()
	again := time.NewTicker(w.poll)
	defer again.Stop()
	found := map[string]counter{}
	for begin := time.Now(); ; {
		if time.Since(begin) < span {
			select {
			case <-again.C:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		now, err := w.readCounters(ctx)
		if err != nil {
			return nil, err
		}
		for key, c := range now {
			was, known := since[key]
			if _, has := found[key]; !has && known && c.at.After(was.at) && c.at.Sub(was.at) >= span {
				found[key] = c
			}
		}
		if len(found) == len(since) {
			return found, nil
		}
		select {
		case <-again.C:
			continue
		case <-late.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if _, has := found[whole]; !has {
			return nil, &control.Error{Kind: kindNoSample, Message: fmt.Sprintf("the kubelet of node %s took no sample within %s that is %s after the one before: take a longer window, or look into the kubelet's log", w.node, span+w.limit, span)}
		}
		return found, nil
	}
}

// usageBetween returns the usage of the node and its parts between the samples in first and those in last. It lists a part in
// before as lost if one of the part's counters is missing in first or last, or was reset.
func (w restWatch) usageBetween(before, first, last map[string]counter) sample.NodeRest {
	n := sample.NodeRest{Node: w.node}
	parts, lost := map[string]*sample.RestPart{}, map[string]bool{}
	for key, c := range before {
		a, began := first[key]
		b, ended := last[key]
		if key == whole {
			n.Whole = usage(a, b)
			continue
		}
		p := parts[c.part]
		if p == nil {
			p = &sample.RestPart{Name: c.part, Network: c.network}
			parts[c.part] = p
		}
		if !began || !ended || b.cpuNs < a.cpuNs {
			lost[c.part] = true
			continue
		}
		u := usage(a, b)
		p.Cores, p.MemoryBytes = p.Cores+u.Cores, p.MemoryBytes+u.MemoryBytes
		if p.SpanNs == 0 || u.SpanNs < p.SpanNs {
			p.SpanNs = u.SpanNs
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch p := parts[name]; {
		case !lost[name]:
			n.Parts = append(n.Parts, *p)
		case p.Network:
			n.Lost = append(n.Lost, name)
		default:
			n.LostOthers = append(n.LostOthers, name)
		}
	}
	return n
}

// usage returns the mean CPU use from sample a to sample b of one counter, and the memory in b.
func usage(a, b counter) sample.Usage {
	span := b.at.Sub(a.at)
	return sample.Usage{Cores: float64(b.cpuNs-a.cpuNs) / float64(span), SpanNs: int64(span), MemoryBytes: b.memory}
}

// summary has the fields of a kubelet's summary that cnibench reads.
type summary struct {
	Node struct {
		stats
		SystemContainers []stats `json:"systemContainers"`
	} `json:"node"`
	Pods []struct {
		PodRef struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"podRef"`
		Containers []stats `json:"containers"`
	} `json:"pods"`
}

// stats are the counters of a container or of a node.
type stats struct {
	Name string `json:"name"`
	CPU  struct {
		Time  time.Time `json:"time"`
		Usage *uint64   `json:"usageCoreNanoSeconds"`
	} `json:"cpu"`
	Memory struct {
		WorkingSet uint64 `json:"workingSetBytes"`
	} `json:"memory"`
}

// readCounters reads the kubelet's summary. It returns the counters of the node, the kubelet, the runtime and all
// containers, by unique keys. It omits a container without CPU time, which has ended. It fails if the summary lacks the
// node's CPU time.
func (w restWatch) readCounters(ctx context.Context) (map[string]counter, error) {
	raw, err := w.read(ctx, w.node)
	if err != nil {
		return nil, fmt.Errorf("read the kubelet's summary of node %s: %w", w.node, withAdvice(withCause(ctx, err)))
	}
	var s summary
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read the kubelet's summary of node %s: %w", w.node, err)
	}
	if s.Node.CPU.Usage == nil {
		return nil, &control.Error{Kind: kindNoSample, Message: fmt.Sprintf("the kubelet of node %s has no CPU time of the node in its summary", w.node)}
	}
	all := map[string]counter{}
	add := func(key, part string, network bool, of stats) {
		if of.CPU.Usage != nil {
			all[key] = counter{part, network, of.CPU.Time, *of.CPU.Usage, of.Memory.WorkingSet}
		}
	}
	add(whole, whole, false, s.Node.stats)
	for _, c := range s.Node.SystemContainers {
		// The other counters are of the pods, or the rest. A kubelet without a cgroup of its own reports the node's
		// counters as its own.
		apart := c.CPU.Usage != nil && *c.CPU.Usage != *s.Node.CPU.Usage
		if apart && (c.Name == "kubelet" || c.Name == "runtime") {
			add(c.Name, c.Name, false, c)
		}
	}
	for _, p := range s.Pods {
		network := detect.ServesNetwork(p.PodRef.Name)
		for _, c := range p.Containers {
			part := otherPods
			switch {
			case slices.Contains(w.own, p.PodRef.Namespace):
				part = ownPods
			case network:
				part = p.PodRef.Namespace + "/" + c.Name
			}
			add(p.PodRef.Namespace+"/"+p.PodRef.Name+"/"+c.Name, part, network && part != ownPods, c)
		}
	}
	return all, nil
}
