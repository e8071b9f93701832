// Package lookup resolves a name as getaddrinfo of the GNU C library does, and answers as a small authoritative server.
// It opens no socket: the caller sends its messages, passes on what arrives, and gives it the time.
//
//	Names ──► Lookup.Begin ──► Send ──► answer: Take ──► ... ──► Done
//	                            ▲       silence: Expire   │
//	                            └─────────────────────────┘
//
// For each name of the search list, A and AAAA go out at once from one socket. If one of the two answers is late, both
// queries are repeated one after the other on the same socket, then each from its own socket, within the same attempt.
// If both are late, the next attempt begins on a new socket, with the next server. After a truncated answer the query
// is repeated over TCP. Any other message is ignored.
package lookup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cnibench/cnibench/internal/plan/names"
)

// Do is the caller's next step.
type Do int

// The steps.
const (
	// Wait: wait for a message or the deadline.
	Wait Do = iota
	// Send: send what Due returns on the open socket.
	Send
	// Reopen: open a new socket (TCP if Stream), and send what Due returns on it.
	Reopen
	// Done: stop, because there is a result.
	Done
)

// Result is the result of a resolution.
type Result int

// The results.
const (
	UnderWay Result = iota
	// Found: the name has an address. NoName: no name that was tried exists, or none has an address.
	Found
	NoName
	// TimedOut: no answer came. Failed: servers reported a failure or refused, or nothing listened.
	TimedOut
	Failed
)

// MaxMessage is the size in bytes of a buffer for any answer of our server. Without EDNS a datagram has 512 bytes, and
// a name of 255 bytes occurs twice in it.
const MaxMessage = 1232

// question is a name with the two messages that query it.
type question struct {
	name  dnsmessage.Name
	query [2][]byte
}

// types are the types of the two queries.
var types = [2]dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}

// Names has the queries for a name and its search list, with the timeouts and the number of attempts. Lookups share
// it.
type Names struct {
	questions []question
	itself    int // index of the question for the name without a suffix
	queries   int
	servers   int
	attempts  int
	timeout   int64
	stream    bool
}

// New returns the queries for a name and its search list. They are for A and AAAA if pair is true, otherwise for A, and
// go over TCP alone if stream is true. New fails if c has no server or the name is invalid.
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
	// at is the index of the question, try the number of the attempt. single is how queries are sent after one of two
	// answers was missing: 0 at once, 1 one after the other, 2 each from its own socket.
	at, try, single int
	// ids are the ids of the two queries. due marks queries to send, open queries that wait for their answer.
	ids       [2]uint16
	due, open [2]bool
	// found means that an answer had an address, failed that a server reported a failure; both in this attempt.
	found, failed bool
	// Stream means that queries go over TCP.
	Stream bool
	// Deadline is when to call Expire, in ns by the clock of the caller.
	Deadline int64
	Account
}

// Account is the result of a resolution, and its cost.
type Account struct {
	Result Result
	// Queries is the number of queries sent, Timeouts the number of answers that did not come in time.
	Queries, Timeouts int
}

// Begin begins a resolution at now, in ns. ids is a random number for the ids of both queries.
func (l *Lookup) Begin(n *Names, now int64, ids uint32) Do {
	*l = Lookup{names: n, ids: [2]uint16{uint16(ids), uint16(ids >> 16)}}
	if l.ids[0] == l.ids[1] {
		l.ids[1]++
	}
	return l.beginAttempt(now)
}

// Server returns the index of the server that is queried.
func (l *Lookup) Server() int { return l.try % l.names.servers }

// beginAttempt begins an attempt at the present question.
func (l *Lookup) beginAttempt(now int64) Do {
	l.Stream = l.names.stream
	l.found, l.failed = false, false
	l.open = [2]bool{true, l.names.queries == 2}
	l.due = [2]bool{true, l.open[1] && l.single == 0}
	l.Deadline = now + l.names.timeout
	return Reopen
}

// Due returns the next message to send, nil if there is none. It writes the message to to, which must have room for it.
// Over TCP the message has its length prefix.
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

// Both reports whether both queries are due.
func (l *Lookup) Both() bool { return l.due[0] && l.due[1] }

// Take handles a message that has arrived at now. It ignores a message that answers no pending query.
func (l *Lookup) Take(message []byte, now int64) Do {
	i, answer := l.matchQuery(message)
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
		return l.retryOrEnd(now, Failed)
	}
	return l.evaluateAnswers(now)
}

// evaluateAnswers evaluates the answers that have arrived: an address is the result; without one the next name is queried.
func (l *Lookup) evaluateAnswers(now int64) Do {
	switch {
	case l.found:
		return l.endResolution(Found)
	case l.at+1 == len(l.names.questions):
		return l.endResolution(NoName)
	}
	l.at++
	l.try, l.single = 0, 0
	return l.beginAttempt(now)
}

// Expire handles the deadline, if it has passed: it repeats queries, begins the next attempt or ends the resolution.
func (l *Lookup) Expire(now int64) Do {
	if now < l.Deadline {
		return Wait
	}
	l.Timeouts++
	switch half := l.names.queries == 2 && l.open[0] != l.open[1]; {
	case half && l.single == 0 && !l.Stream:
		l.single = 1
		l.beginAttempt(now)
		return Send // the socket stays
	case half && l.single == 1:
		l.single = 2
		return l.beginAttempt(now)
	case half && !l.failed:
		return l.evaluateAnswers(now)
	}
	return l.retryOrEnd(now, TimedOut)
}

// Refuse handles a failure to reach the current server: it begins the next attempt or ends the resolution as Failed.
func (l *Lookup) Refuse(now int64) Do { return l.retryOrEnd(now, Failed) }

// retryOrEnd begins the next attempt. After the last attempt at a name of the search list, it queries the name itself; after
// that, the resolution ends with the result why.
func (l *Lookup) retryOrEnd(now int64, why Result) Do {
	l.try++
	switch {
	case l.try < l.names.attempts*l.names.servers:
		return l.beginAttempt(now)
	case l.at < l.names.itself:
		l.at = l.names.itself
		l.try, l.single = 0, 0
		return l.beginAttempt(now)
	}
	return l.endResolution(why)
}

func (l *Lookup) endResolution(r Result) Do {
	l.Result, l.Deadline = r, 0
	return Done
}

// answer is the content of a message: whether it is truncated, has an address, or reports a failure.
type answer struct{ cut, found, failed bool }

// matchQuery returns which query a message answers, -1 for none: an answer has the query's id, name and type, and the
// response bit.
func (l *Lookup) matchQuery(message []byte) (int, answer) {
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
	if err != nil || h.ID != l.ids[i] || !l.open[i] || q.Type != types[i] || !equalNames(&q.Name, &l.names.questions[l.at].name) {
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

// hasAddress reports whether an answer has a record of the type kind. torn means that the records are unreadable.
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

// equalNames reports whether two names are equal, ignoring case.
func equalNames(a, b *dnsmessage.Name) bool {
	if a.Length != b.Length {
		return false
	}
	for i, c := range a.Data[:a.Length] {
		if lowerASCII(c) != lowerASCII(b.Data[i]) {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
