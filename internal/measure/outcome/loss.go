package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// The places where a datagram can be lost, nearest to the receiving application first. They are the suffixes of metrics
// after metric.Loss and a dot.
const (
	inSocket  = "socket_buffer"
	inBacklog = "backlog"
	inQdisc   = "qdisc"
	inDevice  = "device"
	onPath    = "path"
)

// places has all places, nearest to the receiving application first.
var places = []string{inSocket, inBacklog, inQdisc, inDevice, onPath}

// located tells where the datagrams of a trial were lost.
type located struct {
	// Lost and Expected are the receiver's counts.
	Lost, Expected uint64
	// At divides Lost among all places.
	At map[string]uint64
	// Drops are the drops at the hosts' devices and queueing disciplines, largest first.
	Drops []sample.Drop
}

// locateLosses returns where datagrams were lost, from the counters of the two sides and of the hosts between them. If drops
// is nil it uses the devices of the two ends. It returns false without a loss, or without a receiver's count. From the
// receiver towards the sender, each counter explains a part of the loss. The rest is the path's: a filter, a route, an
// unseen host. Counters include other traffic, so none explains more than the remaining loss. The sending and the receiving
// device also count a packet that a full backlog drops, and a tunnel device counts the drops of the queueing discipline
// below it, so these are subtracted.
func locateLosses(client, server *sample.Observation, drops []sample.Drop) (located, bool) {
	d := datagramsOf(client, server)
	if d == nil || d.Lost == 0 {
		return located{}, false
	}
	if drops == nil {
		drops = append(dropsOf(client), dropsOf(server)...)
	}
	sums := map[string]uint64{}
	for _, x := range drops {
		sums[x.Kind] += x.Packets
	}
	backlog := max(hostOf(client).SoftnetDropped, hostOf(server).SoftnetDropped) // both may be on one machine
	l := located{Lost: d.Lost, Expected: d.Expected, At: map[string]uint64{}, Drops: sortedDrops(drops)}
	left := d.Lost
	take := func(place string, n uint64) {
		l.At[place] = min(n, left)
		left -= l.At[place]
	}
	take(inSocket, socketDrops(d, client, server))
	take(inBacklog, backlog)
	take(inQdisc, sums[sample.DropQdisc])
	take(inDevice, excessOver(sums[sample.DropTX], backlog+sums[sample.DropQdisc])+excessOver(sums[sample.DropRX], backlog))
	take(onPath, left)
	return l, true
}

// String returns a description in one line: "120 of 1000 datagrams: 100 socket buffer, 20 qdisc (node-1 eth0 tbf 20)".
func (l located) String() string {
	var parts []string
	for _, place := range places {
		n := l.At[place]
		if n == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", n, strings.ReplaceAll(place, "_", " "))
		if place == inQdisc || place == inDevice {
			if names := l.describeLargestDrops(place); names != "" {
				part += " (" + names + ")"
			}
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%d of %d datagrams: %s", l.Lost, l.Expected, strings.Join(parts, ", "))
}

// describeLargestDrops describes the two largest counters of a place, inQdisc or inDevice.
func (l located) describeLargestDrops(place string) string {
	var names []string
	for _, d := range l.Drops {
		if d.Kind == sample.DropInsert || d.Kind == sample.Clash || (d.Kind == sample.DropQdisc) != (place == inQdisc) || len(names) == 2 {
			continue
		}
		names = append(names, fmt.Sprintf("%s %s %s %d", d.Host, d.Device, cmp.Or(d.What, d.Kind), d.Packets))
	}
	return strings.Join(names, ", ")
}

func sortedDrops(drops []sample.Drop) []sample.Drop {
	drops = slices.Clone(drops)
	slices.SortStableFunc(drops, func(a, b sample.Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	return drops
}

func excessOver(n, floor uint64) uint64 { return max(n, floor) - floor }

// datagramsOf returns the counts of the receiver, the sum of both if both sides receive, or nil.
func datagramsOf(client, server *sample.Observation) *sample.Datagrams {
	var all []*sample.Datagrams
	for _, o := range []*sample.Observation{server, client} {
		if o != nil && o.Datagrams != nil {
			all = append(all, o.Datagrams)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return addUnseenLosses(all[0], client, server)
	}
	a, b := all[0], all[1]
	sum := &sample.Datagrams{
		Expected: a.Expected + b.Expected, Received: a.Received + b.Received, Lost: a.Lost + b.Lost,
		Reordered: a.Reordered + b.Reordered, Duplicates: a.Duplicates + b.Duplicates, JitterNs: (a.JitterNs + b.JitterNs) / 2,
	}
	if a.SocketDrops != nil && b.SocketDrops != nil {
		drops := *a.SocketDrops + *b.SocketDrops
		sum.SocketDrops = &drops
	}
	return sum
}

func receives(o *sample.Observation) bool { return o != nil && o.Datagrams != nil }

const (
	// unseen is the share of the sent datagrams that the receiver's count may lack, because the two windows differ.
	unseen = 0.05
	// silence is the time without a datagram, at the end of a window, after which a path counts as dead. After a shorter
	// time, missing datagrams may be in a queue, or may belong to the other side's window.
	silence = 20 * time.Millisecond
)

// addUnseenLosses adds to the receiver's counts the datagrams that were lost after the last arrival, estimated from what
// the sender sent. It returns d unchanged unless nothing arrived for silence at the end, and more than the share
// unseen is missing.
func addUnseenLosses(d *sample.Datagrams, client, server *sample.Observation) *sample.Datagrams {
	from, to := client, server
	if receives(client) {
		from, to = server, client
	}
	if from == nil || from.ElapsedNs <= 0 || to.BytesReceived == 0 || d.SilentNs < int64(silence) {
		return d
	}
	size := float64(to.BytesReceived) / float64(d.Received)
	sent := float64(from.BytesSent) / size * float64(to.ElapsedNs) / float64(from.ElapsedNs)
	if missing := sent - float64(d.Expected); missing > unseen*sent {
		all := *d
		all.Expected, all.Lost = d.Expected+uint64(missing), d.Lost+uint64(missing)
		return &all
	}
	return d
}

// socketDrops returns the drops of the receiving sockets, by their own counters or those of the receiver's namespace.
func socketDrops(d *sample.Datagrams, client, server *sample.Observation) uint64 {
	if d.SocketDrops != nil {
		return *d.SocketDrops
	}
	o := server
	if receives(client) {
		o = client
	}
	return uint64(max(hostOf(o).SNMP["Udp.RcvbufErrors"], 0))
}

// dropsOf returns the drops at the devices in a side's namespace.
func dropsOf(o *sample.Observation) []sample.Drop {
	var drops []sample.Drop
	for name, n := range hostOf(o).Devices {
		dot := max(strings.LastIndexByte(name, '.'), 0)
		kind, ok := map[string]string{".tx_dropped": sample.DropTX, ".rx_dropped": sample.DropRX}[name[dot:]]
		if ok && n > 0 {
			drops = append(drops, sample.Drop{Host: o.Side, Device: name[:dot], Kind: kind, Packets: uint64(n)})
		}
	}
	slices.SortFunc(drops, func(a, b sample.Drop) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Kind, b.Kind))
	})
	return drops
}

// deriveLossPlaces derives the share of the expected datagrams lost at each place, if any.
func (t *trial) deriveLossPlaces() {
	if t.client == nil || t.server == nil {
		return
	}
	l, ok := locateLosses(t.client.Observation, t.server.Observation, t.c.Drops)
	if !ok || l.Expected == 0 {
		return
	}
	for _, place := range places {
		t.metrics[metric.Loss+"."+place] = float64(l.At[place]) / float64(l.Expected)
	}
}
