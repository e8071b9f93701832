// Package lookup resolves a name as getaddrinfo of the GNU C library does, and answers as a small authoritative server. It opens no
// socket: a caller sends what it says, hands it what comes, and tells it the time.
//
//	Names ──► Lookup.Begin ──► Send ──► answer: Take ──► ... ──► Done
//	                            ▲       silence: Expire   │
//	                            └─────────────────────────┘
//
// For each name of the search list, A and AAAA go out at once from one socket. When one of the two answers does not come in time, both
// are asked for again one after the other on the same socket, then each from a socket of its own; the attempt is the same. When
// neither comes, the next attempt begins on a new socket, at the next server. An answer that was cut off is asked for again over TCP.
// Any other message is ignored.
package lookup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cnibench/cnibench/internal/plan/names"
)

// Do is what the caller of a Lookup does next.
type Do int

// What is done next: nothing but wait, send what Due returns on the socket that is open or on a new one (over TCP, if Stream), or nothing
// more, because there is a result.
const (
	Wait Do = iota
	Send
	Reopen
	Done
)

// Result is what came of a resolution.
type Result int

// The results.
const (
	UnderWay Result = iota
	// Found: the name has an address. NoName: it does not exist under any name that was tried, or has no address.
	Found
	NoName
	// TimedOut: no answer came. Failed: servers said that they failed, or refused; or none was there to listen.
	TimedOut
	Failed
)

// MaxMessage is room for an answer of ours: without EDNS a datagram has 512 bytes, and a name of 255 bytes is in it twice.
const MaxMessage = 1232

// question is a name in the two messages that ask for it.
type question struct {
	name  dnsmessage.Name
	query [2][]byte
}

// types are what the two queries ask for.
var types = [2]dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}

// Names are the questions of a resolution and how patiently they are asked. Lookups share them.
type Names struct {
	questions []question
	itself    int
	queries   int
	servers   int
	attempts  int
	timeout   int64
	stream    bool
}

// New returns the questions for a name under a configuration, for A and AAAA if pair, over TCP alone if stream.
func New(name string, c names.Config, pair, stream bool) (*Names, error) {
	if len(c.Servers) == 0 {
		return nil, fmt.Errorf("no name server is known: /etc/resolv.conf names none")
	}
	all, itself := c.Names(name)
	n := &Names{itself: itself, queries: 1, servers: len(c.Servers), attempts: c.Attempts, timeout: int64(c.Timeout), stream: stream}
	if pair {
		n.queries = 2
	}
	for _, text := range all {
		packed, err := dnsmessage.NewName(text)
		q := question{name: packed}
		for i, kind := range types {
			if err == nil {
				q.query[i], err = (&dnsmessage.Message{Header: dnsmessage.Header{RecursionDesired: true},
					Questions: []dnsmessage.Question{{Name: packed, Type: kind, Class: dnsmessage.ClassINET}}}).Pack()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("name %q: %w", text, err)
		}
		n.questions = append(n.questions, q)
	}
	return n, nil
}

// Lookup is one resolution under way.
type Lookup struct {
	names *Names
	// at is the question, try the attempt; single is how the queries go out since one of two answers was missing: 0 at once, 1 one after the
	// other, 2 each from a socket of its own.
	at, try, single int
	// ids are those of the two queries; due are those to send, open those that wait for their answer.
	ids       [2]uint16
	due, open [2]bool
	// found says that an answer has an address, failed that a server said that it failed; both in this attempt.
	found, failed bool
	// Stream says that queries go over TCP.
	Stream bool
	// Deadline is when Expire has to be called, by the clock of the caller.
	Deadline int64
	Account
}

// Account is what came of a resolution, and what it took.
type Account struct {
	Result Result
	// Queries is how often a query was sent, Timeouts how often an answer was awaited in vain.
	Queries, Timeouts int
}

// Begin begins a resolution at a time in ns; ids is random.
func (l *Lookup) Begin(n *Names, now int64, ids uint32) Do {
	*l = Lookup{names: n, ids: [2]uint16{uint16(ids), uint16(ids >> 16)}}
	if l.ids[0] == l.ids[1] {
		l.ids[1]++
	}
	return l.ask(now)
}

// Server returns which of the servers is asked.
func (l *Lookup) Server() int { return l.try % l.names.servers }

// ask begins an attempt at the present question.
func (l *Lookup) ask(now int64) Do {
	l.Stream = l.names.stream
	l.found, l.failed = false, false
	l.open = [2]bool{true, l.names.queries == 2}
	l.due = [2]bool{true, l.open[1] && l.single == 0}
	l.Deadline = now + l.names.timeout
	return Reopen
}

// Due returns the next message to send, in to, which has room for it; nil without one. Over TCP its length is before it.
func (l *Lookup) Due(to []byte) []byte {
	for i := range l.due {
		if !l.due[i] {
			continue
		}
		l.due[i] = false
		l.Queries++
		query := l.names.questions[l.at].query[i]
		prefix := 0
		if l.Stream {
			binary.BigEndian.PutUint16(to, uint16(len(query)))
			prefix = 2
		}
		copy(to[prefix:], query)
		binary.BigEndian.PutUint16(to[prefix:], l.ids[i])
		return to[:prefix+len(query)]
	}
	return nil
}

// Both says whether both queries are due.
func (l *Lookup) Both() bool { return l.due[0] && l.due[1] }

// Take takes a message that has come.
func (l *Lookup) Take(message []byte, now int64) Do {
	i, answer := l.match(message)
	switch {
	case i < 0:
		return Wait
	case answer.cut && !l.Stream:
		l.Stream, l.single, l.due = true, 0, l.open
		l.Deadline = now + l.names.timeout
		return Reopen
	}
	l.open[i] = false
	l.found, l.failed = l.found || answer.found, l.failed || answer.failed
	switch {
	case l.open[1] && l.single > 0: // the second query waits for the first answer
		l.due[1] = true
		if l.single == 2 {
			return Reopen
		}
		return Send
	case l.open[0] || l.open[1]:
		return Wait
	case l.failed && !l.found:
		return l.again(now, Failed)
	}
	return l.settle(now)
}

// settle goes by the answers that have come: an address is the result, and without one the next name is asked for.
func (l *Lookup) settle(now int64) Do {
	switch {
	case l.found:
		return l.end(Found)
	case l.at+1 == len(l.names.questions):
		return l.end(NoName)
	}
	l.at++
	l.try, l.single = 0, 0
	return l.ask(now)
}

// Expire gives up waiting, if the deadline has passed.
func (l *Lookup) Expire(now int64) Do {
	if now < l.Deadline {
		return Wait
	}
	l.Timeouts++
	switch half := l.names.queries == 2 && l.open[0] != l.open[1]; {
	case half && l.single == 0 && !l.Stream:
		l.single = 1
		l.ask(now)
		return Send // the socket stays
	case half && l.single == 1:
		l.single = 2
		return l.ask(now)
	case half && !l.failed:
		return l.settle(now)
	}
	return l.again(now, TimedOut)
}

// Refuse takes word that nothing listens at the server, or that it cannot be reached.
func (l *Lookup) Refuse(now int64) Do { return l.again(now, Failed) }

// again begins the next attempt; after the last, of a name of the search list, it asks for the name itself.
func (l *Lookup) again(now int64, why Result) Do {
	l.try++
	switch {
	case l.try < l.names.attempts*l.names.servers:
		return l.ask(now)
	case l.at < l.names.itself:
		l.at = l.names.itself
		l.try, l.single = 0, 0
		return l.ask(now)
	}
	return l.end(why)
}

func (l *Lookup) end(r Result) Do {
	l.Result, l.Deadline = r, 0
	return Done
}

// answer is what a message says.
type answer struct{ cut, found, failed bool }

// match returns which query a message answers, -1 for any other: an answer has the query's id, name and type, and the bit of an answer.
func (l *Lookup) match(message []byte) (int, answer) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response {
		return -1, answer{}
	}
	i := 0
	if h.ID != l.ids[0] {
		i = 1
	}
	q, err := p.Question()
	if err != nil || h.ID != l.ids[i] || !l.open[i] || q.Type != types[i] || !same(&q.Name, &l.names.questions[l.at].name) {
		return -1, answer{}
	}
	a := answer{cut: h.Truncated}
	switch h.RCode {
	case dnsmessage.RCodeSuccess:
		a.found, a.failed = hasAddress(&p, types[i])
	case dnsmessage.RCodeNameError:
	default:
		a.failed = true
	}
	return i, a
}

// hasAddress says whether one of the records of an answer is of a kind, and whether they cannot be read.
func hasAddress(p *dnsmessage.Parser, kind dnsmessage.Type) (has, torn bool) {
	err := p.SkipAllQuestions()
	for err == nil {
		var h dnsmessage.ResourceHeader
		if h, err = p.AnswerHeader(); err == nil {
			has = has || h.Type == kind
			err = p.SkipAnswer()
		}
	}
	torn = !errors.Is(err, dnsmessage.ErrSectionDone)
	return has && !torn, torn
}

// same says whether two names are the same, in any case of letters.
func same(a, b *dnsmessage.Name) bool {
	if a.Length != b.Length {
		return false
	}
	for i, c := range a.Data[:a.Length] {
		if lower(c) != lower(b.Data[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
