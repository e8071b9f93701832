package detect

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// looker runs a program in a pod and returns its stdout, even if the program failed.
type looker interface {
	Exec(ctx context.Context, pod string, argv []string) (stdout []byte, err error)
}

// End is a pod from which the network is inspected.
type End struct {
	// Pod is the pod's name, Node the node that it should run on.
	Pod, Node string
	// By runs programs in the pod.
	By looker
	// Host is true for a host-network pod.
	Host bool
	// Role is "client" or "server" for an end of the run's paths, "" for any other pod.
	Role string
	// Address is the address that other ends dial.
	Address netip.Addr
}

// Route is a path with its two ends.
type Route struct {
	// Path is the path's name. Client and Server are the names of the ends' pods.
	Path           string
	Client, Server string
}

// Ground is the input of Prove: the pods from which it inspects the network, and the routes between them on which it sends
// traffic.
type Ground struct {
	// Profile is the profile that the plan expects; "" accepts any profile.
	Profile string
	Ends    []End
	Routes  []Route
}

const (
	// program is the path of cnibench in the pods. echoPort is a UDP port that no other program in the pods uses.
	program  = "/cnibench"
	echoPort = 19411
	// lookTime bounds the inspection of one end. echoTime is how long the server's end of a route answers datagrams.
	lookTime, echoTime = 20 * time.Second, 40 * time.Second
	// watchTime is how long frames are captured, sendTime how long the client sends datagrams meanwhile.
	watchTime, sendTime = 5 * time.Second, 3 * time.Second
)

// Prove inspects the network from every end and tries every route. It returns the snapshot with the ends' observations, the
// verdict of that snapshot, and the proofs. It fails only if ctx has ended. Any other failure leaves a claim unproven.
func Prove(ctx context.Context, s Snapshot, g Ground) (Snapshot, Verdict, []Proof, error) {
	var proofs []Proof
	s.Seen, proofs = inspectEnds(ctx, g)
	v := Detect(s)
	proofs = append(proofs, claimProofs(v, s, g)...)
	for _, r := range g.Routes {
		t := &trial{ground: g, route: r, mark: hex.EncodeToString(randomMark())}
		proofs = append(proofs, t.routeProofs(ctx, v, s)...)
	}
	if ctx.Err() != nil {
		return s, v, proofs, context.Cause(ctx)
	}
	return s, v, proofs, nil
}

// randomMark returns 16 random bytes, which mark the packets of one trial.
func randomMark() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return b
}

// inspectEnds inspects the network from all ends concurrently, and returns the observations. For an end that cannot be
// inspected it returns a proof with the result notProven instead.
func inspectEnds(ctx context.Context, g Ground) ([]seenAtEnd, []Proof) {
	answers, errs := make([]seenAtEnd, len(g.Ends)), make([]error, len(g.Ends))
	var all sync.WaitGroup
	for i, e := range g.Ends {
		all.Go(func() {
			limit, stop := context.WithTimeout(ctx, lookTime)
			defer stop()
			out, err := e.By.Exec(limit, e.Pod, lookCommand(e.Host))
			answers[i] = seenAtEnd{Pod: e.Pod, Node: e.Node, Host: e.Host, Role: e.Role}
			if err == nil {
				answers[i].State, err = netstate.Parse(out)
			}
			errs[i] = err
		})
	}
	all.Wait()
	var seen []seenAtEnd
	var proofs []Proof
	for i, a := range answers {
		if errs[i] != nil {
			proofs = append(proofs, Proof{What: "what is visible", Where: a.Pod, Why: errs[i].Error()})
			continue
		}
		seen = append(seen, a)
	}
	return seen, proofs
}

// lookCommand returns the command that inspects the network from a pod. host means that the pod has the node's namespace.
func lookCommand(host bool) []string {
	if host {
		return []string{program, "look"}
	}
	return []string{program, "look", "--pod"}
}

// trial tries one route.
type trial struct {
	ground Ground
	route  Route
	// mark is in the payload of all packets of the trial, in hexadecimal.
	mark string
}

func (g Ground) endOf(pod string) (End, bool) {
	i := slices.IndexFunc(g.Ends, func(e End) bool { return e.Pod == pod })
	if i < 0 {
		return End{}, false
	}
	return g.Ends[i], true
}

// routeProofs returns the proofs for the route: the largest packet that passes, and the encapsulation on the wire. It checks
// the encapsulation only between ordinary pods on different nodes.
func (t *trial) routeProofs(ctx context.Context, v Verdict, s Snapshot) []Proof {
	client, ok := t.ground.endOf(t.route.Client)
	server, both := t.ground.endOf(t.route.Server)
	if !ok || !both || !server.Address.IsValid() {
		return []Proof{{What: whatMTU, Where: t.route.Path, Why: "one of its ends is missing"}}
	}
	echoing, stop := context.WithTimeout(ctx, echoTime)
	defer stop()
	over := make(chan error, 1)
	go func() {
		over <- t.runLook(echoing, server, nil, "--echo", strconv.Itoa(echoPort), "--for", echoTime.String())
	}()
	proofs := []Proof{t.mtuProof(ctx, client, server, s)}
	// The wrapping is of pods' packets between nodes.
	if client.Node != server.Node && !client.Host && !server.Host {
		proofs = append(proofs, t.encapsulationProof(ctx, client, server, v, s))
	}
	select {
	case err := <-over: // it ended early
		if err != nil && proofs[0].Result == notProven {
			proofs[0].Why += "; the other end: " + err.Error()
		}
	default:
		stop()
		<-over
	}
	return proofs
}

// runLook runs "cnibench look" with args in the pod of an end, and decodes its output into answer unless answer is nil.
func (t *trial) runLook(ctx context.Context, e End, answer any, args ...string) error {
	argv := append([]string{program, "look", "--mark", t.mark}, args...)
	out, err := e.By.Exec(ctx, e.Pod, argv)
	if err == nil && answer != nil {
		err = json.Unmarshal(out, answer)
	}
	if err != nil {
		return unmarkedError(err, t.mark)
	}
	return nil
}

// unmarkedError returns err without the random mark of a trial in its text. The text becomes a fact, and facts are compared
// between runs.
func unmarkedError(err error, mark string) error {
	text := strings.ReplaceAll(err.Error(), " --mark "+mark, "")
	return errors.New(strings.Join(strings.Fields(text), " "))
}

// whatMTU is the name of the proof that packets of the ends' MTU pass between two ends.
const whatMTU = "MTU end to end"

func (t *trial) mtuProof(ctx context.Context, client, server End, s Snapshot) Proof {
	p := Proof{What: whatMTU, Where: t.route.Path}
	to := netip.AddrPortFrom(server.Address, echoPort)
	limit, stop := context.WithTimeout(ctx, echoTime)
	defer stop()
	var m netstate.PathMTU
	if err := t.runLook(limit, client, &m, "--mtu", to.String()); err != nil {
		p.Why = err.Error()
		return p
	}
	// A packet has to fit both ends; a route may have a smaller MTU than its device, as Cilium's has.
	claimed := m.Own
	for _, e := range []End{client, server} {
		for _, seen := range s.Seen {
			if _, mtu, ok := seen.Way(); ok && seen.Pod == e.Pod {
				claimed = min(claimed, mtu)
			}
		}
	}
	p.Claimed, p.Seen = strconv.Itoa(claimed), strconv.Itoa(min(m.There, m.Back))
	if m.There != m.Back {
		p.Seen = fmt.Sprintf("%d there, %d back", m.There, m.Back)
	}
	switch p.Result = OK; {
	case min(m.There, m.Back) < claimed && m.Silent:
		p.Result, p.Why = mismatch, "larger packets vanish without an ICMP error: connections will hang"
	case min(m.There, m.Back) < claimed: // upstream Canal's default, and that of dual-stack flannel for IPv6: traffic passes
		p.Result, p.Why = doubtful, "packets larger than "+p.Seen+" are refused with an ICMP error"
	}
	return p
}

// encapsulationProof checks the encapsulation between the nodes: the client sends marked datagrams, while a pod on one of
// the nodes captures the frames of the node's device.
func (t *trial) encapsulationProof(ctx context.Context, client, server End, v Verdict, s Snapshot) Proof {
	p := Proof{What: "encapsulation on the wire", Where: t.route.Path, Claimed: v.Encapsulation.Value}
	watcher, device, ok := t.findWatcher(s, client.Node, server.Node)
	if !ok {
		p.Why = "no host-network pod on either node from which frames could be seen"
		return p
	}
	p.Where += " on " + device + " of " + watcher.Node
	port := strconv.Itoa(echoPort)
	limit, stop := context.WithTimeout(ctx, watchTime+lookTime)
	defer stop()
	var wire netstate.Wire
	watched := make(chan error, 1)
	go func() {
		watched <- t.runLook(limit, watcher, &wire, "--wire", device, "--port", port, "--for", watchTime.String())
	}()
	to := netip.AddrPortFrom(server.Address, echoPort)
	var sent netstate.Sending
	err := t.runLook(limit, client, &sent, "--send", to.String(), "--for", sendTime.String())
	watchErr := <-watched
	switch {
	case err != nil:
		p.Why = err.Error()
	case watchErr != nil:
		p.Why = watchErr.Error()
	case sent.Answered == 0:
		p.Why = "none of " + strconv.Itoa(sent.Sent) + " datagrams was answered"
	default:
		p.judgeFrames(wire, v.Encapsulation.Value)
	}
	return p
}

// findWatcher returns a host-network pod on one of nodes, and the device of that node's default route. It prefers a pod that
// could list netfilter's chains, because such a pod may probably also capture frames. It returns false if there is no such
// pod.
func (t *trial) findWatcher(s Snapshot, nodes ...string) (End, string, bool) {
	// An end that may list chains has more rights, and can probably capture frames.
	best, device := End{}, ""
	for _, node := range nodes {
		for _, e := range t.ground.Ends {
			if !e.Host || e.Node != node {
				continue
			}
			for _, seen := range s.Seen {
				d, _, ok := seen.Way()
				if !ok || seen.Pod != e.Pod {
					continue
				}
				if device == "" || seen.Chains != nil {
					best, device = e, d.Name
				}
				if seen.Chains != nil {
					return best, device, true
				}
			}
		}
	}
	return best, device, device != ""
}
