package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// samplers has the privileged pods on the nodes of a site. A sampler that is started in such a pod records what the node's
// CPUs execute during one trial.
type samplers struct {
	// post is the Lookout with the pods.
	post *detect.Lookout
	// cpus are the CPUs of the load.
	cpus []int
	// turns counts the sampled trials of each route, because only every sample.FollowEvery-th trial follows packets.
	turns map[plan.Route]int
}

// sampler is a running sampler on a node.
type sampler struct {
	node string
	// machine identifies the running kernel of the node.
	machine string
	// ask writes requests to in, the sampler's input; answers reads its output.
	ask     *json.Encoder
	in      *io.PipeWriter
	answers *json.Decoder
	// stop cuts the connection; ended is closed when the sampler has ended.
	stop  context.CancelFunc
	ended chan struct{}
}

// samplerPatience is how long a sampler may take to start and to answer, in addition to the trial itself.
const samplerPatience = 30 * time.Second

// startSampler starts a sampler on a node and waits for its first message. The sampler's connection is cut after life.
func (s *samplers) startSampler(node string, life time.Duration) (*sampler, error) {
	i := slices.IndexFunc(s.post.Ends(), func(e detect.End) bool { return e.Node == node })
	if i < 0 {
		return nil, fmt.Errorf("no sampler runs on node %s", node)
	}
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ctx, stop := context.WithTimeout(context.Background(), life)
	x := &sampler{node: node, ask: json.NewEncoder(ask), in: ask, answers: json.NewDecoder(answers), stop: stop, ended: make(chan struct{})}
	go func() {
		var words strings.Builder
		err := s.post.Stream(ctx, s.post.Ends()[i].Pod, control.SamplerArgs, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &words})
		if said := strings.TrimSpace(words.String()); said != "" {
			err = errors.New(said)
		}
		if err == nil {
			err = io.EOF
		}
		_, _ = in.CloseWithError(err), out.CloseWithError(err) // neither has an error
		close(x.ended)
	}()
	first, err := x.readAnswer()
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	x.machine = first.Machine
	return x, nil
}

// Ask sends a request and returns the answer. It fails if the answer contains an error or invalid stacks.
func (x *sampler) Ask(ask control.SamplerAsk) (control.SamplerAnswer, error) {
	if err := x.ask.Encode(ask); err != nil {
		return control.SamplerAnswer{}, fmt.Errorf("sampler on node %s: %w", x.node, err)
	}
	return x.readAnswer()
}

func (x *sampler) readAnswer() (a control.SamplerAnswer, err error) {
	err = x.answers.Decode(&a)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err == nil && a.Stacks != nil {
		err = a.Stacks.Check()
	}
	if err != nil {
		return a, fmt.Errorf("sampler on node %s: %w", x.node, err)
	}
	return a, nil
}

// Close closes the sampler's input, waits up to 2 s until it has ended, and cuts its connection. A sampler on a node that does
// not answer ends by itself.
func (x *sampler) Close() error {
	err := x.in.Close()
	late := time.NewTimer(2 * time.Second)
	defer late.Stop()
	select {
	case <-x.ended:
	case <-late.C:
	}
	x.stop()
	return err
}

// recorder records one trial on the nodes of its ends.
type recorder struct {
	// on has the samplers of the nodes. The first is on the client's node.
	on []*sampler
	// server is the index of the server's node in on.
	server int
	// follows means that this trial follows packets. unknown means that it does not, but other trials of the route do.
	follows, unknown bool
	// apart means that the kernel accounts interrupts separately from tasks.
	apart bool
}

// startRecorder starts a sampler on each node of a path, for a trial of at most length. one reports whether the path has two
// nodes that run on one machine. It fails if the site has no samplers.
func (s *site) startRecorder(v plan.Variant, p plan.Path, length time.Duration) (r *recorder, one bool, err error) {
	if s.samplers == nil {
		return nil, false, errors.New("the nodes have no samplers: they come with --inspect")
	}
	nodes, err := s.cluster.NodesOf(plan.Single(v, p).Local())
	if err != nil {
		return nil, false, err
	}
	r = &recorder{apart: outcome.FromFacts(s.facts).IRQApart, server: len(slices.Compact(slices.Clone(nodes))) - 1}
	for _, node := range slices.Compact(nodes) {
		x, err := s.samplers.startSampler(node, length+2*samplerPatience)
		if err != nil {
			return nil, false, errors.Join(err, r.Close())
		}
		r.on = append(r.on, x)
	}
	return r, r.server > 0 && r.on[0].machine != "" && r.on[0].machine == r.on[1].machine, nil
}

// sendBegin sends a Begin request to each sampler.
func (r *recorder) sendBegin(b control.SamplerBegin) error {
	for _, x := range r.on {
		if _, err := x.Ask(control.SamplerAsk{Begin: &b}); err != nil {
			return err
		}
	}
	return nil
}

// Sample starts samplers that can record what the CPUs of a path's nodes execute, in a trial of at most length.
func (s *site) Sample(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
	r, one, err := s.startRecorder(v, p, length)
	if err != nil {
		return env.Recording{}, err
	}
	turns, route := s.samplers.turns, plan.Single(v, p).Local()
	turn := turns[route]
	turns[route]++
	// Between nodes on one machine there are functions that do not belong to the CNI.
	r.follows, r.unknown = one && turn%sample.FollowEvery == 0, one && turn%sample.FollowEvery != 0
	begin := control.SamplerBegin{CPUs: s.samplers.cpus, Rate: sample.Rate, Length: length, Follow: r.follows}
	if one { // both samplers sample the same CPUs
		begin.Rate /= 2
	}
	if err := r.sendBegin(begin); err != nil {
		return env.Recording{}, errors.Join(err, r.Close())
	}
	return env.Recording{Start: r.sendStart, Finish: r.finishSampling}, nil
}

// Count starts samplers that can count the runs of BPF programs on the nodes of a path. The kernel counts the runs on the
// whole machine, so two nodes on one machine need only one sampler.
func (s *site) Count(v plan.Variant, p plan.Path, length time.Duration) (env.Recording, error) {
	r, one, err := s.startRecorder(v, p, length)
	if err != nil {
		return env.Recording{}, err
	}
	if one {
		err = r.on[1].Close()
		r.on = r.on[:1]
	}
	if err = errors.Join(err, r.sendBegin(control.SamplerBegin{Length: length, Programs: true})); err != nil {
		return env.Recording{}, errors.Join(err, r.Close())
	}
	return env.Recording{Start: r.sendStart, Finish: r.finishCounting}, nil
}

// finishCounting returns the runs of BPF programs on the nodes during the trial, and ends the samplers. If an observation is
// nil, it returns the zero value.
func (r *recorder) finishCounting(client, server *sample.Observation) (seen sample.Recorded, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	if client == nil || server == nil {
		return seen, nil
	}
	var all *sample.Programs
	for i, x := range r.on {
		w := control.SamplerWindow{BeganNs: client.BeganNs}
		if i > 0 { // another clock
			w.BeganNs = server.BeganNs
		}
		a, err := x.Ask(control.SamplerAsk{Window: &w})
		if err == nil && a.Programs == nil {
			err = fmt.Errorf("sampler on node %s: no programs in its answer", x.node)
		}
		if err != nil {
			return seen, err
		}
		if i == 0 {
			all = a.Programs
			continue
		}
		all.Join(a.Programs)
	}
	seen.Programs = all
	return seen, nil
}

func (r *recorder) sendStart() error {
	for _, x := range r.on {
		if _, err := x.Ask(control.SamplerAsk{Start: true}); err != nil {
			return err
		}
	}
	return nil
}

// finishSampling returns the stacks of all nodes, counted per slice of the client's window, and ends the samplers. If an
// observation is nil, it returns the zero value.
func (r *recorder) finishSampling(client, server *sample.Observation) (seen sample.Recorded, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	if client == nil || server == nil {
		return seen, nil
	}
	seen.Stacks, err = r.joinedStacks(client, server)
	return seen, err
}

// agentCommand is the name of cnibench's processes in pods.
const agentCommand = "cnibench"

// joinedStacks requests the stacks of each node and joins them. If both nodes run on one machine, it counts only once what
// both samplers recorded.
func (r *recorder) joinedStacks(client, server *sample.Observation) (*sample.Stacks, error) {
	windows := sample.InWindow(client.Intervals)
	nodes := map[uint64]string{}
	stacks := make([]*sample.Stacks, len(r.on))
	for i, x := range r.on {
		w := control.SamplerWindow{BeganNs: client.BeganNs, Slices: windows, Ends: map[string][]sample.Thread{}, Unknown: r.unknown, Apart: r.apart}
		if i == 0 {
			w.Ends[control.SideClient], w.CPUs = client.Threads, client.LoadCPUs
		}
		if i == r.server {
			w.Ends[control.SideServer], w.CPUs = server.Threads, append(w.CPUs, server.LoadCPUs...)
		}
		if i > 0 && client.Machine != server.Machine { // another clock
			w.BeganNs = server.BeganNs
		}
		a, err := x.Ask(control.SamplerAsk{Window: &w})
		if err != nil {
			return nil, err
		}
		if a.Stacks == nil {
			return nil, fmt.Errorf("sampler on node %s: no stacks in its answer", x.node)
		}
		stacks[i] = a.Stacks
		for _, inode := range a.Spaces {
			nodes[inode] = x.node
		}
	}
	all := &sample.Stacks{}
	for _, s := range stacks {
		all.Join(s, func(root string) string { return stackPlace(root, nodes) })
	}
	if len(r.on) > 1 && client.Machine == server.Machine && slices.Equal(client.LoadCPUs, server.LoadCPUs) {
		if own := all.Samples(); all.Foreign > own {
			all.Foreign = (all.Foreign - own) / 2 // each sampler took the samples of the other node for foreign
		}
		all.Counters = stacks[0].Counters // both counted the same CPUs
		all.Others = stacks[0].Others     // both saw the same tasks
		delete(all.Others, agentCommand)
	}
	return all, nil
}

// stackPlace returns the place of a stack. If the root is a network namespace, the place is the node of that namespace. A
// namespace that nodes lacks belongs to the network between the nodes, and its place is sample.SwitchSpace. For any other
// root it returns the root unchanged. nodes has the names of the nodes by the inodes of their namespaces.
func stackPlace(root string, nodes map[uint64]string) string {
	text, ok := strings.CutPrefix(root, control.SpaceRoot)
	inode, err := strconv.ParseUint(text, 10, 64)
	switch {
	case !ok || err != nil:
		return root
	case nodes[inode] != "":
		return "node " + nodes[inode]
	}
	return sample.SwitchSpace
}

// Close ends the samplers.
func (r *recorder) Close() error {
	var errs []error
	for _, x := range r.on {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}
