package lookup

import (
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is an authoritative server of one name, which has an A and an AAAA record. Other names do not exist.
type Server struct {
	name dnsmessage.Name
	a    dnsmessage.AResource
	aaaa dnsmessage.AAAAResource
}

// lifetime is the time to live of an answer in seconds.
const lifetime = 30

// NewServer returns a server of a name; "" is the root. Its addresses are from the ranges for documentation
// (RFC 5737, RFC 3849). It fails if the name is invalid.
func NewServer(name string) (*Server, error) {
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	packed, err := dnsmessage.NewName(name)
	return &Server{name: packed, a: dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
		aaaa: dnsmessage.AAAAResource{AAAA: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}}}, err
}

// Answer returns the answer to a message, in the memory of to; nil for a message that is not a query.
func (s *Server) Answer(message, to []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionDesired: h.RecursionDesired}
	ours := equalNames(&q.Name, &s.name)
	if !ours {
		reply.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(to[:0], reply)
	err = b.StartQuestions()
	if err == nil {
		err = b.Question(q)
	}
	if err == nil {
		err = b.StartAnswers()
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: lifetime}
	switch {
	case err != nil || !ours:
	case q.Type == dnsmessage.TypeA:
		err = b.AResource(header, s.a)
	case q.Type == dnsmessage.TypeAAAA:
		err = b.AAAAResource(header, s.aaaa)
	}
	if err != nil {
		return nil
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}
