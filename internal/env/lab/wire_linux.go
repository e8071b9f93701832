package lab

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/impair"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// insertLink inserts an impaired link before end, the device of the switch that leads to host. It does so only if
// the lab has delay or loss for host. It returns the device to add to the bridge: that of the link, or end without
// a link. The link neither delays nor drops packets until Impair.
func (b *builder) insertLink(end, host string) (port string, err error) {
	delay, loss := b.spec.Lab.Delay, b.spec.Lab.Loss
	for _, p := range b.spec.Lab.Plants {
		if p.Found([]string{host}) {
			delay, loss = max(delay, p.Delay), max(loss, p.Loss)
		}
	}
	if delay == 0 && loss == 0 {
		return end, nil
	}
	inner, port := end+"-w", end+"-p"
	at := b.at[b.inst.Switch]
	if err := at.Add(link.Veth{Name: inner, Peer: port, MTU: b.spec.Lab.MTU}); err != nil {
		return "", err
	}
	if err := errors.Join(at.Up(end), at.Up(inner)); err != nil {
		return "", err
	}
	l, err := impair.Open(b.inst.Switch.NS, impair.Options{
		A: end, B: inner, Delay: delay, Loss: loss, CPUs: b.place.aside,
	})
	if err != nil {
		return "", fmt.Errorf("impaired link: %w", err)
	}
	b.inst.lines = append(b.inst.lines, l)
	return port, nil
}

// addLossyLinks prepares the loss that the conditions plant between two nodes, in both directions. Nothing is lost before
// Impair.
func (b *builder) addLossyLinks() error {
	ends := map[string][]underlayEnd{}
	for _, n := range b.spec.Nodes {
		ends[n.Name] = underlayEnds(n)
	}
	for _, p := range b.spec.Lab.Plants {
		for _, way := range [][2]string{{p.Node, p.Peer}, {p.Peer, p.Node}} {
			if p.Peer == "" {
				continue
			}
			if err := b.addLoss(ends[way[0]], ends[way[1]], p.Loss); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLoss prepares the loss of a share of the frames from one node to another.
func (b *builder) addLoss(from, to []underlayEnd, share float64) error {
	for _, f := range from {
		for _, t := range to {
			l, err := impair.NewLossy(b.inst.Switch.NS, f.port, t.mac, share)
			if err != nil {
				return err
			}
			b.inst.lines = append(b.inst.lines, l)
		}
	}
	return nil
}

// lineRate returns the rate of a host's NIC in bit/s, 0 for no limit.
func (b *builder) lineRate(h *Host) float64 {
	for _, p := range b.spec.Lab.Plants {
		node, _, _ := strings.Cut(h.Name, "/")
		if p.Rate > 0 && p.Node == node {
			return p.Rate
		}
	}
	return b.spec.Lab.LineRate
}

// impairment is a fault of a link. It has no effect before Impair.
type impairment interface {
	Impair() error
	Close() error
}

// Impair brings the faults of the instance's links into force. Run self-tests before, because their probes do not
// repeat lost packets and do not wait for late ones.
func (i *Instance) Impair() error {
	return errors.Join(each.Of(i.lines, impairment.Impair)...)
}
