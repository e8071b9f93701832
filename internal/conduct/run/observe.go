package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/judge/diagnose"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// lookTime bounds the reading of one place's counters. sizeTime bounds a search for packet sizes (a size that is dropped
	// silently takes 0.75 s), an exchange of messages, and the connections to backends.
	lookTime = 15 * time.Second
	sizeTime = 60 * time.Second
	// sizePort and contentPort are ports on which no server of a trial listens. Searches for sizes and exchanges of
	// messages have different ports, because the echo server for sizes may still run when the echo server for
	// messages starts.
	sizePort, contentPort = "19412", "19413"
)

// examination is the state of one call of Observe: what Observe and the function that it returns have found so far.
type examination struct {
	site     env.Looker
	routes   []plan.Route
	places   []env.Place
	before   map[string]netstate.Account
	ways     []diagnose.Size
	backends []diagnose.Backend
	named    *diagnose.Named
	mu       sync.Mutex
	// turn lets places that are near each other send messages one after the other, so that messages do not disturb each other.
	turn sync.Mutex
	// missing lists what could not be observed.
	missing []string
}

// Met is what Observe found before the trials. Trip is the longest round trip or connection time. Closed is true if some
// path answered in neither direction.
type Met struct {
	Trip   time.Duration
	Closed bool
}

// Observe reads the counters of all places of routes, and tries packet sizes, the backends of a Service, and the named
// target, if it is not nil. Call the returned function after the trials: it sends messages, reads the counters again and
// fills in the evidence, including what could not be read.
func Observe(ctx context.Context, site env.Looker, routes []plan.Route, named *diagnose.Named) (Met, func(context.Context, *diagnose.Evidence)) {
	x := &examination{site: site, routes: routes, named: named}
	for _, r := range routes {
		places, err := site.Places(r)
		if err != nil {
			x.noteMissing("%s: %s", r.Path, err)
		}
		for _, p := range places {
			if !slices.ContainsFunc(x.places, func(q env.Place) bool { return q.Name == p.Name }) {
				x.places = append(x.places, p)
			}
		}
	}
	x.before = x.readAccounts(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { x.trySizes(ctx) })
	wait.Go(func() { x.backends = x.dialSharedBackends(ctx) })
	if n := x.named; n != nil {
		wait.Go(func() { n.Backends = x.dialPods(ctx, n.Name, n.Address, n.Pods) })
	}
	wait.Wait()
	longest, silent, closed := int64(0), map[plan.Path]bool{}, false
	for _, s := range x.ways {
		longest = max(longest, s.Trip, s.Connect)
		if s.Silence() {
			closed = closed || silent[s.Path] // the other way, too
			silent[s.Path] = true
		}
	}
	for _, b := range x.backends {
		if b.Name == "" && len(b.Times) > 0 {
			longest = max(longest, b.Times[0])
		}
	}
	return Met{time.Duration(longest), closed}, x.fillEvidence
}

func (x *examination) fillEvidence(ctx context.Context, e *diagnose.Evidence) {
	x.forEachDirection(func(s *diagnose.Size, from, to env.Place) {
		if s.Failed == "" {
			x.checkContent(ctx, s, from, to)
		}
	})
	e.Sizes, e.Backends, e.Named = x.ways, x.backends, x.named
	after := x.readAccounts(context.WithoutCancel(ctx)) // each look has a limit of its own
	for _, p := range x.places {
		before, had := x.before[p.Name]
		now, has := after[p.Name]
		if p.Node == "" {
			now.Proxies = nil // no node has Services to serve there
		}
		if had && has {
			e.Places = append(e.Places, diagnose.Place{Name: p.Name, Pod: p.Pod, Account: now.Since(before)})
		}
	}
	e.Missing = append(e.Missing, x.missing...)
}

func (x *examination) noteMissing(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(x.missing, text) {
		x.missing = append(x.missing, text)
	}
}

// readAccounts reads the counters of all places concurrently, and returns them by place. It notes what could not be read.
func (x *examination) readAccounts(ctx context.Context) map[string]netstate.Account {
	all := map[string]netstate.Account{}
	var wait sync.WaitGroup
	for _, p := range x.places {
		wait.Go(func() {
			limit, stop := context.WithTimeout(ctx, lookTime)
			defer stop()
			out, err := x.site.Look(limit, p.Name, "--count")
			var a netstate.Account
			if err == nil {
				a, err = netstate.ParseAccount(out)
			}
			if err != nil {
				x.noteMissing("counters of %s: %s", p.Name, errorLine(err))
				return
			}
			for _, u := range a.Unproven {
				x.noteMissing("%s: %s", p.Name, u)
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			all[p.Name] = a
		})
	}
	wait.Wait()
	return all
}

// trySizes tries packet sizes on all paths without a Service, concurrently and from both ends. Each end tries the sizes that
// its own device may send.
func (x *examination) trySizes(ctx context.Context) {
	for _, r := range x.routes {
		places, err := x.site.Places(r)
		if err != nil || r.Path.ByService() || len(places) < 2 {
			continue
		}
		for _, way := range [][2]env.Place{{places[0], places[1]}, {places[1], places[0]}} {
			x.ways = append(x.ways, diagnose.Size{Path: r.Path, From: way[0].Name, To: way[1].Name})
		}
	}
	slices.SortFunc(x.ways, func(a, b diagnose.Size) int { return strings.Compare(a.Path.String()+a.From, b.Path.String()+b.From) })
	x.forEachDirection(func(s *diagnose.Size, from, to env.Place) {
		s.Failed = x.useEchoServer(ctx, sizePort, to, func(ctx context.Context, target, mark string) error {
			return x.inspectPlace(ctx, &s.PathMTU, from.Name, "--mtu", target, "--mark", mark)
		})
	})
}

// forEachDirection calls do for every direction of every path, concurrently.
func (x *examination) forEachDirection(do func(s *diagnose.Size, from, to env.Place)) {
	place := func(name string) env.Place {
		return x.places[slices.IndexFunc(x.places, func(p env.Place) bool { return p.Name == name })]
	}
	var wait sync.WaitGroup
	for i := range x.ways {
		wait.Go(func() { do(&x.ways[i], place(x.ways[i].From), place(x.ways[i].To)) })
	}
	wait.Wait()
}

// inspectPlace runs an inspection command at a place. It decodes the command's JSON output into the value that into points to.
func (x *examination) inspectPlace(ctx context.Context, into any, place string, what ...string) error {
	out, err := x.site.Look(ctx, place, what...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// useEchoServer starts an echo server on a port of place to, calls do with the server's address and a random mark,
// and stops the server. The server answers only messages with the mark. The result says why do or the server failed;
// it is "" if neither did.
func (x *examination) useEchoServer(ctx context.Context, port string, to env.Place, do func(ctx context.Context, target, mark string) error) string {
	limit, stop := context.WithTimeout(ctx, sizeTime)
	defer stop()
	mark := make([]byte, 16)
	_, _ = rand.Read(mark) // it never fails
	text := hex.EncodeToString(mark)
	answering, hangUp := context.WithCancel(limit)
	answered := make(chan error, 1)
	go func() {
		_, err := x.site.Look(answering, to.Name, "--echo", port, "--mark", text, "--for", sizeTime.String())
		answered <- err
	}()
	err := do(limit, net.JoinHostPort(to.Address, port), text)
	hangUp()
	if ended := <-answered; err != nil && ended != nil && !errors.Is(ended, context.Canceled) {
		err = ended
	}
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(errorLine(err), text, "MARK")
}

// farAway is the shortest round trip at which messages are too few to disturb each other.
const farAway = 10 * time.Millisecond

// checkContent sends messages from one place to an echo server at another, in packets of a size that passes, and
// checks their content. Messages between near places wait for their turn.
func (x *examination) checkContent(ctx context.Context, s *diagnose.Size, from, to env.Place) {
	if time.Duration(max(s.Trip, s.Connect)) < farAway {
		x.turn.Lock()
		defer x.turn.Unlock()
	}
	why := x.useEchoServer(ctx, contentPort, to, func(ctx context.Context, target, mark string) error {
		return x.inspectPlace(ctx, &s.Content, from.Name, "--content", target, "--mark", mark, "--length", strconv.Itoa(min(s.There, s.Back)))
	})
	if why != "" {
		x.noteMissing("content of messages from %s to %s: %s", s.From, s.To, why)
	}
}

// dialSharedBackends starts a server in each backend of the site's Service with several backends. Then a pod connects to each
// backend and to the Service. It returns the results, and notes which backends cannot listen.
func (x *examination) dialSharedBackends(ctx context.Context) []diagnose.Backend {
	shared := x.site.Shared()
	limit, stop := context.WithTimeout(ctx, sizeTime)
	defer stop()
	serving, hangUp := context.WithCancel(limit)
	var wait sync.WaitGroup
	port := strconv.Itoa(shared.Port)
	pods := each.Of(shared.Backends, func(b env.Place) diagnose.Pod {
		wait.Go(func() {
			_, err := x.site.Look(serving, b.Name, "--serve", port, "--for", sizeTime.String())
			if err != nil && serving.Err() == nil {
				x.noteMissing("%s does not listen: %s", b.Name, errorLine(err))
			}
		})
		return diagnose.Pod{Name: b.Name, Address: net.JoinHostPort(b.Address, port)}
	})
	seen := x.dialPods(limit, shared.Name, shared.Address, pods)
	hangUp()
	wait.Wait()
	return seen
}

// dialPods makes a pod connect to each of pods, and then to the address of their Service ("" for none). It returns
// the results in that order; nil if there are no pods, or if the connections could not be tried.
func (x *examination) dialPods(ctx context.Context, name, address string, pods []diagnose.Pod) (all []diagnose.Backend) {
	i := slices.IndexFunc(x.places, func(p env.Place) bool { return p.Pod })
	if len(pods) == 0 || i < 0 {
		return nil
	}
	targets := each.Of(pods, func(p diagnose.Pod) string { return p.Address })
	if address != "" {
		targets = append(targets, address)
	}
	limit, stop := context.WithTimeout(ctx, sizeTime)
	defer stop()
	var seen []netstate.Dialled
	err := x.inspectPlace(limit, &seen, x.places[i].Name, "--dial", strings.Join(targets, ","))
	if err == nil && len(seen) != len(targets) {
		err = fmt.Errorf("%d answers about %d addresses", len(seen), len(targets))
	}
	if err != nil {
		x.noteMissing("connections to %s: %v", name, err)
		return nil
	}
	for i, d := range seen {
		b := diagnose.Backend{Dialled: d}
		if i < len(pods) {
			b.Name = pods[i].Name
		}
		all = append(all, b)
	}
	return all
}

func errorLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
