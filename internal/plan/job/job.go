// Package job defines what the members of a job send to each other in one step: which member sends how many bytes to
// which other member, and what it must have received before.
//
//	Shape ──► Transfers ──► each member sends its own, and expects those that it receives
//
// It is plain data. So the bytes of every member are known before the first is sent, and a member needs no headers:
// data arrive on a connection in the order of the transfers.
package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Patterns of a step.
const (
	allReduces = "allreduce"
	broadcasts = "broadcast"
	shuffles   = "shuffle"
	replicates = "replicate"
	incasts    = "incast"
	requests   = "microservice"
)

// Ways of a pattern: ring or doubling for allreduce, tree or flat for broadcast, chain or fan-out for replicate. The
// first of each pair is the default.
const (
	viaRing     = "ring"
	viaDoubling = "doubling"
	viaTree     = "tree"
	viaFlat     = "flat"
	viaChain    = "chain"
	viaFanOut   = "fan-out"
)

// What a job does when a member is lost. The first is the default.
const (
	lostEnds      = "end"
	lostContinues = "continue"
)

// Bounds of a Shape.
const (
	LeastMembers = 2
	MostMembers  = 64
	MaxSize      = 1 << 30
	MaxService   = time.Second
	MaxSkew      = 0.95
	// MostDepth is the largest depth of the tree of requests; see Depth.
	MostDepth = 6
)

// Sizes in bytes of messages without data: a request, and an acknowledgement.
const (
	requestSize = 256
	ackSize     = 8
)

// Members forward data in blocks of at least leastBlock bytes, at most mostBlocks of them, so that they begin to send before
// all data have arrived.
const (
	leastBlock = 64 << 10
	mostBlocks = 64
)

// pattern describes one pattern of exchange between the members of a job.
type pattern struct {
	name, title string
	ways        []string
	make        func(Shape) []transfer
	// bus returns the ratio of bus bandwidth to algorithm bandwidth for n members, as nccl-tests defines it. It is nil
	// for patterns without such a definition.
	bus func(n float64) float64
	// data returns how many bytes of data a step handles, for the algorithm bandwidth. It is nil for requests.
	data func(Shape) float64
}

var patterns = []pattern{
	{allReduces, "All-reduce", []string{viaRing, viaDoubling}, allReduceTransfers, func(n float64) float64 { return 2 * (n - 1) / n }, dataSize},
	{broadcasts, "Broadcast", []string{viaTree, viaFlat}, broadcastTransfers, func(float64) float64 { return 1 }, dataSize},
	{shuffles, "Shuffle", nil, shuffleTransfers, func(n float64) float64 { return (n - 1) / n }, dataSize},
	{replicates, "Replication", []string{viaChain, viaFanOut}, replicateTransfers, nil, dataSize},
	{incasts, "Incast", nil, incastTransfers, nil, func(s Shape) float64 { return float64(s.Size) * float64(s.Members-1) }},
	{requests, "Tree of requests", nil, requestTransfers, nil, nil},
}

func dataSize(s Shape) float64 { return float64(s.Size) }

// Patterns returns the names of the patterns, the default first.
func Patterns() []string { return each.Of(patterns, func(p pattern) string { return p.name }) }

// Ways returns the names of the ways of all patterns.
func Ways() []string {
	return slices.Concat(each.Of(patterns, func(p pattern) []string { return p.ways })...)
}

// Losses returns the possible values of Shape.Lost, the default first.
func Losses() []string { return []string{lostEnds, lostContinues} }

// Shape describes one step of a job: its pattern, members and sizes. The zero value is not a step.
type Shape struct {
	Pattern string
	// Via is the way of the pattern, one of Ways; "" for a pattern with only one way.
	Via string
	// Members is the number of pods, each on its own node.
	Members int
	// Size is the number of bytes of each member's vector (allreduce), of the first member's data (broadcast,
	// replicate), of each member's data (shuffle), or of an answer (incast, microservice).
	Size int
	// Skew is the share of each member's data that goes to the first member in addition to its even part (shuffle).
	Skew float64
	// Fanout is the number of requests that a member sends when it receives one (microservice).
	Fanout int
	// Service is how long a member works before it sends these requests (microservice). A member that sends none works
	// before it answers.
	Service time.Duration
	// Lost is what happens when a member other than the first is lost, one of Losses.
	Lost string
}

// Continues reports whether the other members continue in a smaller group when a member is lost.
func (s Shape) Continues() bool { return s.Lost == lostContinues }

func (s Shape) pattern() pattern {
	found, _ := each.First(patterns, func(p pattern) bool { return p.name == s.Pattern })
	return found
}

// WithDefaults returns s with the default of each zero field that its pattern uses.
func (s Shape) WithDefaults() Shape {
	s.Pattern, s.Members = cmp.Or(s.Pattern, allReduces), cmp.Or(s.Members, 4)
	if ways := s.pattern().ways; s.Via == "" && len(ways) > 0 {
		s.Via = ways[0]
	}
	if s.Pattern == requests {
		s.Size, s.Fanout = cmp.Or(s.Size, 1<<10), cmp.Or(s.Fanout, 2)
	}
	s.Size, s.Lost = cmp.Or(s.Size, 1<<20), cmp.Or(s.Lost, lostEnds)
	return s
}

// Faults returns a description of each contradiction in s, nil if there is none. Each field of s must be within its
// bounds and have its default filled in.
func (s Shape) Faults() []string {
	var all []string
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	p := s.pattern()
	ways := "none"
	if len(p.ways) > 0 {
		ways = fmt.Sprint(p.ways)
	}
	refuse(s.Via != "" && !slices.Contains(p.ways, s.Via), "via %s is not a way of %s: it has %s", s.Via, s.Pattern, ways)
	refuse(s.Skew != 0 && s.Pattern != shuffles, "skew is for shuffle, and this is %s", s.Pattern)
	refuse(s.Fanout != 0 && s.Pattern != requests, "fanout is for microservice, and this is %s", s.Pattern)
	refuse(s.Service != 0 && s.Pattern != requests, "service is for microservice, and this is %s", s.Pattern)
	refuse(s.Continues() && s.Pattern == requests, "a tree of requests without a member is another tree: want lost=%s for %s", lostEnds, s.Pattern)
	refuse(s.Continues() && s.Members <= LeastMembers, "%d members cannot lose one and continue: want %d or more", s.Members, LeastMembers+1)
	cut := s.Pattern == shuffles || s.Pattern == allReduces && s.Via == viaRing
	refuse(cut && s.Size < s.Members, "size %d is less than a byte for each of %d members", s.Size, s.Members)
	depth := s.Depth(s.Members - 1)
	refuse(depth > MostDepth, "%d members with fanout %d make a tree of depth %d: want at most %d", s.Members, s.Fanout, depth, MostDepth)
	return all
}

// transfer is data that one member sends to another in one piece.
type transfer struct {
	From, To, Bytes int
	// Needs are the numbers of the transfers that From must have received before it starts this one.
	Needs []int
	// After is how long From works between the arrival of the transfers in Needs and the start of this transfer.
	After time.Duration
}

// Transfers returns the transfers of one step, in the order in which each connection carries them.
func (s Shape) Transfers() []transfer { return s.pattern().make(s) }

// BusFactor returns the ratio of bus bandwidth to algorithm bandwidth, as nccl-tests defines it. Bus bandwidth is
// comparable with the rate of a link. BusFactor returns false for a pattern without such a definition, and for a skewed
// shuffle.
func (s Shape) BusFactor() (float64, bool) {
	p := s.pattern()
	if p.bus == nil || s.Skew > 0 {
		return 0, false
	}
	return p.bus(float64(s.Members)), true
}

// Data returns how many bytes of data a step handles, for the algorithm bandwidth. It returns 0 for a tree of requests.
func (s Shape) Data() float64 {
	if p := s.pattern(); p.data != nil {
		return p.data(s)
	}
	return 0
}

// Busiest returns the bytes of the busiest member in a step: the largest number that any member sends or receives.
func (s Shape) Busiest() (most int) {
	sent, taken := make([]int, s.Members), make([]int, s.Members)
	for _, t := range s.Transfers() {
		sent[t.From] += t.Bytes
		taken[t.To] += t.Bytes
		most = max(most, sent[t.From], taken[t.To])
	}
	return most
}

// Title returns the name of the pattern in a report.
func (s Shape) Title() string { return s.pattern().title }

// Depth returns the depth of a member in the tree of requests (microservice). The first member has depth 0. In other
// patterns Depth returns 0.
func (s Shape) Depth(member int) (depth int) {
	for ; s.Pattern == requests && member > 0; member = (member - 1) / s.Fanout {
		depth++
	}
	return depth
}

// Called reports whether members other than the first begin when they receive a request. In other patterns they begin
// when the step begins.
func (s Shape) Called() bool { return s.Pattern == requests }
