// Command resolver is the test cluster's name server: it answers for the names on its command line, by UDP and TCP, and
// denies all others. A cluster's pods query it as they query CoreDNS, so a lookup is the same as elsewhere: packets
// through a Service, and an answer.
//
//	resolver 5353 kubernetes.default.svc.cluster.local=10.96.0.1
//
// With late=90ms before the names, answers by UDP are delayed by 90 ms: a slow resolver for tests.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "resolver:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	port, late, known, err := parse(args)
	if err != nil {
		return err
	}
	udp, err := net.ListenPacket("udp", ":"+port)
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- known.serveUDP(udp, late) }()
	go func() { failed <- known.serveTCP(tcp) }()
	return <-failed
}

// parse parses the arguments: a port, an optional delay of answers by UDP, and names.
func parse(args []string) (port string, late time.Duration, known names, err error) {
	if len(args) < 2 {
		return "", 0, nil, errors.New("want a port, and one NAME=ADDRESS or more")
	}
	port, args = args[0], args[1:]
	if text, ok := strings.CutPrefix(args[0], "late="); ok {
		if late, err = time.ParseDuration(text); err != nil {
			return "", 0, nil, err
		}
		args = args[1:]
	}
	known, err = parseNames(args)
	return port, late, known, err
}

// names has the addresses of the known names, by the name in lower case with its last dot.
type names map[string]netip.Addr

func parseNames(args []string) (names, error) {
	known := names{}
	for _, arg := range args {
		name, text, _ := strings.Cut(arg, "=")
		addr, err := netip.ParseAddr(text)
		if name == "" || err != nil {
			return nil, fmt.Errorf("%q: want NAME=ADDRESS", arg)
		}
		known[strings.ToLower(strings.TrimSuffix(name, "."))+"."] = addr
	}
	return known, nil
}

func (known names) serveUDP(c net.PacketConn, late time.Duration) error {
	query := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(query)
		if err != nil {
			return err
		}
		if reply, err := known.answer(query[:n]); err == nil {
			time.AfterFunc(late, func() { _, _ = c.WriteTo(reply, from) }) // the client may have gone
		}
	}
}

func (known names) serveTCP(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for known.exchange(c) == nil {
			}
		}()
	}
}

// exchange answers one query of a stream: each message follows its length in two bytes.
func (known names) exchange(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return err
	}
	reply, err := known.answer(query)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// answer returns the reply to a query of one question. It fails for anything else.
func (known names) answer(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil || head.Response {
		return nil, errors.Join(err, errors.New("no query"))
	}
	addr, found := known[strings.ToLower(q.Name.String())]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	if !found {
		reply.RCode = dnsmessage.RCodeNameError
	}
	record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}}
	switch {
	case found && addr.Is4() && q.Type == dnsmessage.TypeA:
		record.Body = &dnsmessage.AResource{A: addr.As4()}
	case found && addr.Is6() && q.Type == dnsmessage.TypeAAAA:
		record.Body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
	}
	if record.Body != nil {
		reply.Answers = []dnsmessage.Resource{record}
	}
	return reply.Pack()
}
