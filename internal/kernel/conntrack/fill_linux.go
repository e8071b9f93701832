package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/proc"
)

// More message types and attributes of ctnetlink.
const (
	messageNew       = subsystem
	messageStatsHere = subsystem | 5

	attrProtoInfo    = 4
	attrTimeout      = 7
	attrInfoTCP      = 1
	attrTCPState     = 1
	attrStatsEntries = 1

	establishedTCP     = 3
	assured, confirmed = 1 << 2, 1 << 3
)

const (
	// maxEntriesFile has the maximum number of entries of each namespace, one setting for the whole machine.
	maxEntriesFile = "/proc/sys/net/netfilter/nf_conntrack_max"
	// spare is how many entries stay free for other connections. A trial's connections stay in the table for two
	// minutes after their end.
	spare = 1 << 16
	// standingSeconds is the lifetime of the entries, longer than any run.
	standingSeconds = 24 * 3600
	// batchSize is how many entries one system call adds. An entry has at most 256 bytes.
	batchSize = 256
	buffer    = 1 << 20
)

// Fill adds n established TCP connections to the table of ns. They expire after a day. tuple returns the original
// direction of connection i. Fill needs CAP_NET_ADMIN in ns, and fails if the table has too little room.
func Fill(ns *netns.NS, n int, tuple func(i int) Tuple) error {
	if limit, err := strconv.Atoi(proc.Text(maxEntriesFile)); err == nil && n > limit-spare {
		return fmt.Errorf("%d connections and room for those that are measured are more than the %d that the machine tracks: "+
			"take fewer, or: sysctl -w net.netfilter.nf_conntrack_max=%d", n, limit, n+spare)
	}
	before, err := Count(ns)
	if err != nil {
		return err
	}
	if err := addEntries(ns, n, tuple); err != nil {
		return fmt.Errorf("add %d connection tracking entries: %w", n, err)
	}
	after, err := Count(ns)
	if err == nil && after-before < n {
		err = fmt.Errorf("add %d connection tracking entries: the kernel has %d", n, after-before)
	}
	return err
}

func addEntries(ns *netns.NS, n int, tuple func(i int) Tuple) (err error) {
	c, err := dial(ns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := errors.Join(c.SetWriteBuffer(buffer), c.SetReadBuffer(buffer)); err != nil {
		return err
	}
	batch := make([]netlink.Message, 0, batchSize)
	for i := range n {
		m, err := newEntryRequest(tuple(i))
		if err != nil {
			return err
		}
		if batch = append(batch, m); len(batch) < batchSize && i < n-1 {
			continue
		}
		// The last entry of a batch requests an acknowledgement: errors of the others come before it.
		batch[len(batch)-1].Header.Flags |= netlink.Acknowledge
		if _, err := c.SendMessages(batch); err != nil {
			return err
		}
		if _, err := c.Receive(); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}

// newEntryRequest returns the request to add one established connection.
func newEntryRequest(t Tuple) (netlink.Message, error) {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	e.Nested(attrTupleOriginal, t.encode)
	e.Nested(attrTupleReply, t.replyTuple().encode)
	e.Uint32(attrStatus, seenReply|assured|confirmed)
	e.Uint32(attrTimeout, standingSeconds)
	e.Nested(attrProtoInfo, func(e *netlink.AttributeEncoder) error {
		e.Nested(attrInfoTCP, func(e *netlink.AttributeEncoder) error {
			e.Uint8(attrTCPState, establishedTCP)
			return nil
		})
		return nil
	})
	b, err := e.Encode()
	family := byte(unix.AF_INET)
	if t.Source.Is6() {
		family = unix.AF_INET6
	}
	return netlink.Message{
		Header: netlink.Header{Type: messageNew, Flags: netlink.Request | netlink.Create | netlink.Excl},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, 0}, b...),
	}, err
}

func (t Tuple) replyTuple() Tuple {
	return Tuple{Source: t.Destination, Destination: t.Source, SourcePort: t.DestinationPort, DestinationPort: t.SourcePort, Protocol: t.Protocol}
}

func (t Tuple) encode(e *netlink.AttributeEncoder) error {
	from, to := uint16(attrIPv4Source), uint16(attrIPv4Destination)
	if t.Source.Is6() {
		from, to = attrIPv6Source, attrIPv6Destination
	}
	e.Nested(attrTupleIP, func(e *netlink.AttributeEncoder) error {
		for kind, a := range map[uint16]netip.Addr{from: t.Source, to: t.Destination} {
			e.Bytes(kind, a.AsSlice())
		}
		return nil
	})
	e.Nested(attrTupleProto, func(e *netlink.AttributeEncoder) error {
		e.Uint8(attrProtoNumber, t.Protocol)
		e.Uint16(attrProtoSourcePort, t.SourcePort)
		e.Uint16(attrProtoDestinationPort, t.DestinationPort)
		return nil
	})
	return nil
}

// Count returns how many entries ns has. It needs CAP_NET_ADMIN there.
func Count(ns *netns.NS) (int, error) {
	// The kernel marks its only answer as one of several. An acknowledgement ends them.
	messages, err := executeRequest(ns, messageStatsHere, netlink.Request|netlink.Acknowledge)
	if err != nil {
		return 0, fmt.Errorf("count connection tracking entries: %w", err)
	}
	for _, m := range messages {
		if m.Header.Type == netlink.Error {
			continue // the acknowledgement
		}
		d, err := attributeDecoder(m.Data)
		if err != nil {
			return 0, fmt.Errorf("count connection tracking entries: %w", err)
		}
		for d.Next() {
			if d.Type() == attrStatsEntries {
				return int(d.Uint32()), d.Err()
			}
		}
	}
	return 0, errors.New("count connection tracking entries: the kernel does not say")
}
