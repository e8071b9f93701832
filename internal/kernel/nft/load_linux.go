package nft

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Load programs tables into ns, one after the other. It adds to existing tables, chains and sets of the same names.
// If the kernel refuses a part, the error names the part; earlier transactions stay. It needs CAP_NET_ADMIN in the
// user namespace that owns ns.
func Load(ctx context.Context, ns *netns.NS, tables ...*Table) error {
	return loadTables(ctx, ns, false, tables)
}

// Replace programs tables into ns like Load, but first deletes existing tables of the same names. Each table is
// deleted in the first transaction of its successor.
func Replace(ctx context.Context, ns *netns.NS, tables ...*Table) error {
	return loadTables(ctx, ns, true, tables)
}

func loadTables(ctx context.Context, ns *netns.NS, replace bool, tables []*Table) error {
	s, err := dial(ns)
	if err != nil {
		return err
	}
	defer s.close()
	for _, t := range tables {
		if err := t.Check(); err != nil {
			return err
		}
		l := &loader{ctx: ctx, socket: s, table: t, replace: replace, shared: map[string]string{}}
		if err := l.load(); err != nil {
			return t.loadError(err)
		}
	}
	return nil
}

// loadError returns err, with advice or an explanation if its cause is known.
func (t *Table) loadError(err error) error {
	switch {
	case errors.Is(err, unix.EMSGSIZE):
		return advice.With(err, "one transaction is larger than the socket's buffer, which without the rights of the machine's root "+
			"net.core.wmem_max limits: run as root, or raise that sysctl")
	case errors.Is(err, unix.ENOENT) && len(t.flowtables) > 0:
		return fmt.Errorf("%w: the kernel has no flowtables (modules nf_flow_table_inet, nft_flow_offload); that of make test-vm has", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return advice.With(err, "the kernel lacks a part of nftables: look for CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4, CONFIG_NFT_NAT, "+
			"CONFIG_NFT_MASQ, CONFIG_NFT_CT, CONFIG_NFT_NUMGEN, CONFIG_NFT_FIB_IPV4, CONFIG_NFT_REJECT (modules nf_tables, nft_*)")
	}
	return err
}

// loader programs one table in one or more transactions.
type loader struct {
	ctx    context.Context
	socket *socket
	table  *Table
	// replace means that an existing table of the same name is deleted first.
	replace bool
	batch   batch
	// id is the number of the set that was declared last.
	id uint32
	// shared has the names of the maps that rules share, by their values.
	shared map[string]string
	// tableExists means that the kernel has the table already. The kernel must then choose names for anonymous maps.
	tableExists bool
}

// load programs the table. It sends declarations first, since rules and elements refer to sets and chains by name.
func (l *loader) load() error {
	t := l.table
	l.batch.declareTable(t)
	if l.replace {
		// The table exists now, so it can be deleted.
		l.batch.beginMessage(unix.NFT_MSG_DELTABLE, 0, t.Family, func() string { return "table " + t.Name + " to be replaced" })
		l.batch.putText(unix.NFTA_TABLE_NAME, t.Name)
		l.batch.endMessage()
		l.batch.declareTable(t)
	}
	for _, f := range t.flowtables {
		l.batch.declareFlowtable(t, f)
	}
	for _, s := range t.sets {
		l.id++
		l.batch.declareSet(t, s, l.id)
		if err := l.sendFullBatch(); err != nil {
			return err
		}
	}
	for _, c := range t.chains {
		l.batch.declareChain(t, c)
		if err := l.sendFullBatch(); err != nil {
			return err
		}
	}
	for _, c := range t.chains {
		for i := range c.Rules {
			if err := l.loadRule(c, i); err != nil {
				return err
			}
		}
	}
	for _, s := range t.sets {
		if err := l.loadElements(s); err != nil {
			return err
		}
	}
	return l.sendBatch()
}

func (l *loader) loadRule(c *Chain, i int) error {
	if err := l.batchRule(c, i); err != nil {
		return err
	}
	return l.sendFullBatch()
}

// batchRule adds rule i of c to the batch.
func (l *loader) batchRule(c *Chain, i int) error {
	e := exprs{family: l.table.Family, declareMap: l.declareChoice}
	if err := e.addRule(c.Rules[i]); err != nil {
		return err
	}
	var marshalled [][]byte
	for _, x := range e.list {
		m, err := expr.Marshal(nfproto(l.table.Family), x)
		if err != nil {
			return fmt.Errorf("chain %s, rule %d: %w", c.Name, i+1, err)
		}
		marshalled = append(marshalled, m)
	}
	l.batch.addRule(l.table, c, i, marshalled, e.comment)
	return nil
}

// declareChoice declares the map of a choice, and returns its name and number. If c may share a map and an equal map is
// declared already, it returns the name of that map and 0.
func (l *loader) declareChoice(c choice) (name string, id uint32) {
	key := string(bytes.Join(c.values, nil))
	if name := l.shared[key]; c.shared && name != "" {
		return name, 0
	}
	l.id++
	number := strconv.FormatUint(uint64(l.id), 10)
	switch name = "__map" + number; {
	case c.shared:
		name = "endpoints-" + number
		l.shared[key] = name
	case l.tableExists:
		name = "__map%d"
	}
	l.batch.declareChoiceMap(l.table, c, name, l.id)
	return name, l.id
}

func (l *loader) loadElements(s *Set) error {
	n, element := len(s.Elements), func(i int) {
		l.batch.putKey(keyBytes(s.Elements[i].Key))
		if s.Map {
			l.batch.putVerdict(s.Elements[i].Verdict)
		}
	}
	if s.Interval {
		edges := edgesOf(s.Elements)
		n, element = len(edges), func(i int) {
			if edges[i].end {
				l.batch.putNumber(unix.NFTA_SET_ELEM_FLAGS, unix.NFT_SET_ELEM_INTERVAL_END)
			}
			l.batch.putKey(edges[i].at.AsSlice())
		}
	}
	for done := 0; done < n; {
		done += l.batch.addElements(l.table, s.Name, 0, n-done, func(i int) { element(done + i) })
		if err := l.sendFullBatch(); err != nil {
			return err
		}
	}
	return nil
}

// edge is the start or the end of a prefix. at is the first address of the prefix. If end is true, at is the first
// address after the prefix.
type edge struct {
	at  netip.Addr
	end bool
}

// edgesOf returns the edges of prefixes that do not overlap. They are in ascending order, because otherwise the kernel
// reports that adjacent prefixes overlap. A prefix that includes the last address has no end.
func edgesOf(list []Element) []edge {
	sorted := each.Of(list, func(e Element) netip.Prefix { return e.Key[0].(netip.Prefix).Masked() })
	slices.SortFunc(sorted, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	var edges []edge
	for _, p := range sorted {
		edges = append(edges, edge{at: p.Addr()})
		if end := firstAddrAfter(p); end.IsValid() {
			edges = append(edges, edge{at: end, end: true})
		}
	}
	return edges
}

func (l *loader) sendFullBatch() error {
	if len(l.batch.buf) < limit {
		return nil
	}
	return l.sendBatch()
}

// sendBatch commits the batch, if it is not empty, and empties it.
func (l *loader) sendBatch() error {
	if err := l.ctx.Err(); err != nil {
		return fmt.Errorf("nftables: table %s: %w", l.table.Name, context.Cause(l.ctx))
	}
	b := &l.batch
	if b.isEmpty() {
		return nil
	}
	last := b.sequence
	refusal, err := l.socket.commit(b.finish(), b.start, last)
	if err != nil {
		return fmt.Errorf("nftables: table %s: %w", l.table.Name, err)
	}
	if refusal != nil {
		reason := ""
		if refusal.text != "" {
			reason = ": " + refusal.text
		}
		return fmt.Errorf("nftables: table %s: %s: %w%s", l.table.Name, b.describeMessage(refusal.sequence), refusal.number, reason)
	}
	b.about = b.about[:0]
	b.buf = b.buf[:0]
	return nil
}

// socket is a netlink socket in a namespace.
type socket struct{ fd int }

// buffers is the requested size of the socket's buffers, in bytes.
const buffers = 8 << 20

func dial(ns *netns.NS) (*socket, error) {
	s := &socket{}
	err := ns.Do(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	// Only root of the machine may have larger buffers; otherwise transactions must fit into the default.
	s.enlargeBuffer(buffers)
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffers)
	// Reasons in words are a courtesy of kernels since 4.12.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	if err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		s.close()
		return nil, fmt.Errorf("nftables: %w", os.NewSyscallError("bind", err))
	}
	return s, nil
}

// enlargeBuffer requests a send buffer for a transaction of length bytes. The kernel grants it only to root of the
// machine.
func (s *socket) enlargeBuffer(length int) {
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, max(length, buffers))
}

// close closes the socket; an error would have no consequence.
func (s *socket) close() { _ = unix.Close(s.fd) }

// reply is the kernel's answer to one message; number is 0 if the kernel accepted the message.
type reply struct {
	sequence uint32
	number   unix.Errno
	text     string
}

// commit sends a transaction and waits until the kernel accepts its last message or refuses any message. It returns the
// first refusal, nil without one. A refusal undoes the whole transaction.
func (s *socket) commit(transaction []byte, first, last uint32) (*reply, error) {
	if err := unix.Sendto(s.fd, transaction, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(s.fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		answers, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return nil, fmt.Errorf("answer of %d bytes: %w", n, err)
		}
		for _, a := range answers {
			r, ok := parseReply(a)
			if ok && r.number != 0 {
				return &r, nil
			}
			if ok && r.sequence == last {
				return nil, nil
			}
		}
	}
}

// parseReply decodes an answer. ok is false if m is another kind of message.
func parseReply(m syscall.NetlinkMessage) (r reply, ok bool) {
	const question = 4 // the header of the answered message follows the error number
	if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < question+unix.NLMSG_HDRLEN {
		return r, false
	}
	r.number = unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
	r.sequence = binary.NativeEndian.Uint32(m.Data[question+8:])
	if m.Header.Flags&unix.NLM_F_ACK_TLVS == 0 {
		return r, true
	}
	// Without a reason in words the number is enough.
	reasons, _ := netlink.UnmarshalAttributes(m.Data[question+unix.NLMSG_HDRLEN:])
	for _, a := range reasons {
		if a.Type == unix.NLMSGERR_ATTR_MSG {
			r.text = strings.TrimRight(string(a.Data), "\x00")
		}
	}
	return r, true
}
