package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// findNodes finds the nodes for a plan with pairs and schedules the pairs in rounds. It does nothing for other plans.
// was has the nodes of a resumed file; nil for a new file. It fails with position.Faults if the plan does not fit the
// nodes. It also fails if no pair can be measured now.
func (s *surveyed) findNodes(ctx context.Context, e env.Environment, p plan.Plan, was []mesh.Node) error {
	if !p.Pairs.Given() {
		return nil
	}
	site, ok := e.At(p.Measured()[0]).(env.Meshed)
	if !ok {
		return fmt.Errorf("this environment does not measure pairs of nodes")
	}
	nodes, err := site.Nodes(ctx, p.Measured()[0])
	if err != nil {
		return fmt.Errorf("find the nodes: %w", err)
	}
	if was != nil { // a resumed run measures the pairs of its file
		nodes = slices.Clone(was)
	}
	mesh.Order(nodes)
	names := each.Of(nodes, func(n mesh.Node) string { return n.Name })
	if faults := p.Pairs.Fits(names); faults != nil {
		return faults
	}
	s.nodes, s.schedule = nodes, p.Pairs.Schedule(names, p.Seed)
	for i := range s.schedule.Rounds() {
		for _, pair := range s.schedule.Round(i, 1) {
			if _, why := site.Away(ctx, pair, false); why == "" {
				s.first = pair
				return nil
			}
		}
	}
	node, why := site.Away(ctx, s.schedule.Round(0, 1)[0], false)
	return fmt.Errorf("no pair of nodes can be measured: node %s: %s", node, why)
}

// pairCount returns the number of pairs of nodes between which each case is measured: the number of the plan's pairs,
// or 1 if the environment chooses the pair.
func (s *surveyed) pairCount() int { return max(1, s.schedule.Len()) }

// endsOf returns the ends of a trial. For a trial between a pair of nodes it asks e; otherwise the survey has them already.
func (s *surveyed) endsOf(ctx context.Context, e env.Environment, t plan.Trial) (control.Ends, error) {
	if t.Pair.IsZero() {
		return s.routes[t.Route()], nil
	}
	ends, err := e.At(t.Profile).Endpoints(ctx, t.Route())
	if err != nil {
		return ends, fmt.Errorf("find the ends: %w", err)
	}
	return ends, nil
}

// Suspects are the pairs of nodes whose results differ, or may differ, from those of the other pairs. They are
// measured again after the last repetition, because a difference by chance does not repeat.
const (
	// mostSuspects bounds the number of suspects. moreOfSuspects is how often each is measured again, in alternating
	// directions.
	mostSuspects, moreOfSuspects = 8, 4
)

// tour is a run over pairs of nodes.
type tour struct{ *conductor }

// measurePairs measures every pair of nodes in all cases, repetition by repetition and round by round. The cases of a
// pair follow each other, so that its host network and its pod network are measured at about the same time. Then it
// tries once more the pairs whose nodes were away, and measures the suspects again. It returns why the run ends.
func (c tour) measurePairs(ctx context.Context) (string, error) {
	for again := range 2 {
		if again > 0 {
			c.env.At(c.plan.Measured()[0]).(env.Meshed).Await(ctx)
		}
		c.progress.left = 0
		if reason, err := c.measureRounds(ctx); reason != "" || err != nil {
			return reason, err
		}
		if c.progress.left == 0 {
			break
		}
	}
	suspects := c.memory.pairs.Analyse(c.survey.nodes, c.plan.Margin).Suspects(mostSuspects)
	if len(suspects) == 0 {
		return c.endReason(), nil
	}
	c.reportStep("measuring again what differs: %s", number.Counted(len(suspects), "pair"))
	c.progress.total += len(suspects) * moreOfSuspects * len(c.survey.served)
	for more := 1; more <= moreOfSuspects; more++ {
		for _, p := range suspects {
			if more%2 == 0 {
				p = p.Swapped()
			}
			if reason, err := c.measureRound(ctx, c.plan.Repetitions+more, []mesh.Pair{p}); reason != "" || err != nil {
				return reason, err
			}
		}
	}
	return c.endReason(), nil
}

// measureRounds measures the trials of the plan's repetitions that are not yet in the file. It returns a reason if the run
// must stop.
func (c tour) measureRounds(ctx context.Context) (string, error) {
	for rep := 1; rep <= c.plan.Repetitions; rep++ {
		for i := range c.survey.schedule.Rounds() {
			if reason, err := c.measureRound(ctx, rep, c.survey.schedule.Round(i, rep)); reason != "" || err != nil {
				return reason, err
			}
		}
	}
	return "", nil
}

// endReason returns why the run ends after it has tried every pair. It prints a note if nodes were away.
func (c tour) endReason() string {
	if c.progress.left == 0 {
		return result.Complete
	}
	c.reportNote("%s not measured: %s away; --resume measures what is missing", number.Counted(c.progress.left, "trial"),
		strings.Join(slices.Sorted(maps.Keys(c.memory.away)), ", "))
	return result.Away
}

// isAway reports whether a pair cannot be measured now because a node is away. It prints a note when a node leaves or
// returns.
func (c tour) isAway(ctx context.Context, k plan.Case, p mesh.Pair) bool {
	node, why := c.env.At(k.Profile).(env.Meshed).Away(ctx, p, false)
	if node != "" {
		if !c.memory.away[node] {
			c.reportNote("node %s is away, and its pairs are left out until it is back: %s", node, why)
		}
		c.memory.away[node] = true
		return true
	}
	for _, node := range []string{p.From, p.To} {
		if c.memory.away[node] {
			delete(c.memory.away, node)
			c.reportNote("node %s is back", node)
		}
	}
	return false
}

// measureRound measures all cases between pairs that share no node, as many pairs at once as the plan allows. It
// returns a reason if the run must stop.
func (c tour) measureRound(ctx context.Context, rep int, round []mesh.Pair) (string, error) {
	cases := slices.DeleteFunc(c.plan.Order(rep), func(k plan.Case) bool { return !c.survey.served[k] })
	for pairs := range slices.Chunk(round, c.plan.Pairs.AtOnce()) {
		for _, k := range cases {
			if reason, err := c.measureCaseOnPairs(ctx, k, rep, pairs); reason != "" || err != nil {
				return reason, err
			}
		}
		slices.Reverse(cases) // what comes first differs
	}
	return "", nil
}

// measureCaseOnPairs measures one case between all given pairs concurrently, and writes the records. It skips pairs that are
// already in the file or whose nodes are away. It returns a reason if the run must stop.
func (c tour) measureCaseOnPairs(ctx context.Context, k plan.Case, rep int, pairs []mesh.Pair) (string, error) {
	trials := each.Of(pairs, func(p mesh.Pair) plan.Trial { return plan.Trial{Case: k, Repetition: rep, Pair: p} })
	if trials = slices.DeleteFunc(trials, c.memory.had.has); len(trials) == 0 {
		return "", nil
	}
	if reason := c.stopReason(ctx, rep, 0); reason != "" {
		return reason, nil
	}
	wanted := len(trials)
	trials = slices.DeleteFunc(trials, func(t plan.Trial) bool { return c.isAway(ctx, k, t.Pair) })
	c.progress.left += wanted - len(trials)
	records, ended := make([]result.Record, len(trials)), make([]bool, len(trials))
	var all sync.WaitGroup
	for i, t := range trials {
		all.Go(func() { records[i], ended[i] = c.measureTrial(ctx, t, nil) })
	}
	all.Wait()
	for i := range records {
		if !ended[i] {
			return result.Interrupted, nil
		}
		if err := c.recoverAndWrite(ctx, &records[i]); err != nil {
			return "", err
		}
	}
	return "", nil
}

// ledger records which trials are in a file. The zero value is empty. An entry takes few bytes, because there may be a
// million trials.
type ledger struct {
	cases map[plan.Case]uint32
	nodes map[string]uint32
	// had is the set of trials, by the numbers of their case, repetition and both nodes. counts is the number of trials by
	// case and repetition.
	had    map[[4]uint32]struct{}
	counts map[[2]uint32]int
}

// trialKey returns the key of a trial. If its case or a node has no number yet, it assigns one if added is true;
// otherwise ok is false.
func (l *ledger) trialKey(t plan.Trial, added bool) (key [4]uint32, ok bool) {
	if added && l.cases == nil {
		*l = ledger{map[plan.Case]uint32{}, map[string]uint32{}, map[[4]uint32]struct{}{}, map[[2]uint32]int{}}
	}
	at, known := l.cases[t.Case]
	if !known && !added {
		return key, false
	}
	if !known {
		at = uint32(len(l.cases))
		l.cases[t.Case] = at
	}
	key = [4]uint32{at, uint32(t.Repetition)}
	for i, name := range []string{t.Pair.From, t.Pair.To} {
		node, known := l.nodes[name]
		if !known && !added {
			return key, false
		}
		if !known {
			node = uint32(len(l.nodes))
			l.nodes[name] = node
		}
		key[2+i] = node
	}
	return key, true
}

func (l *ledger) add(t plan.Trial) {
	key, _ := l.trialKey(t, true)
	if _, twice := l.had[key]; !twice {
		l.had[key] = struct{}{}
		l.counts[[2]uint32{key[0], key[1]}]++
	}
}

func (l *ledger) has(t plan.Trial) bool {
	key, ok := l.trialKey(t, false)
	_, had := l.had[key]
	return ok && had
}

// trialCount returns how many trials of a case and a repetition are in the file.
func (l *ledger) trialCount(k plan.Case, rep int) int {
	at, ok := l.cases[k]
	if !ok {
		return 0
	}
	return l.counts[[2]uint32{at, uint32(rep)}]
}
