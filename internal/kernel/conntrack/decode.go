package conntrack

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
)

// Attribute numbers of ctnetlink, from include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	attrTupleOriginal = 1
	attrTupleReply    = 2
	attrStatus        = 3
	attrMark          = 8
	attrLabels        = 22

	attrTupleIP    = 1
	attrTupleProto = 2

	attrIPv4Source      = 1
	attrIPv4Destination = 2
	attrIPv6Source      = 3
	attrIPv6Destination = 4

	attrProtoNumber          = 1
	attrProtoSourcePort      = 2
	attrProtoDestinationPort = 3
)

// seenReply and offloaded are IPS_SEEN_REPLY and IPS_OFFLOAD of the status.
const (
	seenReply = 1 << 1
	offloaded = 1 << 14
)

// headerLength is the length of struct nfgenmsg, which precedes the attributes.
const headerLength = 4

// attributeDecoder returns a decoder for the attributes after the header of a message.
func attributeDecoder(b []byte) (*netlink.AttributeDecoder, error) {
	if len(b) < headerLength {
		return nil, fmt.Errorf("%d bytes have no header", len(b))
	}
	d, err := netlink.NewAttributeDecoder(b[headerLength:])
	if err == nil {
		d.ByteOrder = binary.BigEndian
	}
	return d, err
}

// decodeEntry reads one message of a dump, without its netlink header.
func decodeEntry(b []byte) (Entry, error) {
	var e Entry
	d, err := attributeDecoder(b)
	if err != nil {
		return e, fmt.Errorf("conntrack message: %w", err)
	}
	for d.Next() {
		switch d.Type() {
		case attrTupleOriginal:
			d.Nested(e.Original.decode)
		case attrTupleReply:
			d.Nested(e.Reply.decode)
		case attrStatus:
			status := d.Uint32()
			e.Replied, e.Offloaded = status&seenReply != 0, status&offloaded != 0
		case attrMark:
			e.Mark = d.Uint32()
		case attrLabels:
			for i, b := 0, d.Bytes(); i < len(e.Labels) && len(b) >= 8; i, b = i+1, b[8:] {
				e.Labels[i] = binary.NativeEndian.Uint64(b)
			}
		}
	}
	if err := d.Err(); err != nil {
		return Entry{}, fmt.Errorf("conntrack message: %w", err)
	}
	return e, nil
}

func (t *Tuple) decode(d *netlink.AttributeDecoder) error {
	for d.Next() {
		switch d.Type() {
		case attrTupleIP:
			d.Nested(t.decodeAddresses)
		case attrTupleProto:
			d.Nested(t.decodeProtocol)
		}
	}
	return nil // the decoder keeps its error for its owner
}

func (t *Tuple) decodeAddresses(d *netlink.AttributeDecoder) error {
	for d.Next() {
		switch d.Type() {
		case attrIPv4Source, attrIPv6Source:
			d.Do(addressDecoder(&t.Source))
		case attrIPv4Destination, attrIPv6Destination:
			d.Do(addressDecoder(&t.Destination))
		}
	}
	return nil
}

func addressDecoder(to *netip.Addr) func([]byte) error {
	return func(b []byte) error {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return fmt.Errorf("address of %d bytes", len(b))
		}
		*to = a
		return nil
	}
}

func (t *Tuple) decodeProtocol(d *netlink.AttributeDecoder) error {
	for d.Next() {
		switch d.Type() {
		case attrProtoNumber:
			t.Protocol = d.Uint8()
		case attrProtoSourcePort:
			t.SourcePort = d.Uint16()
		case attrProtoDestinationPort:
			t.DestinationPort = d.Uint16()
		}
	}
	return nil
}
