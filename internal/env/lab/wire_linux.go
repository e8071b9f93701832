package lab

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/impair"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// wire adds the link with delay and loss between a host's end in the switch and its port, and returns the name of the
// port. Without delay and loss the end is the port. Pods that are connected to the switch have no such link. The link is
// perfect until Impair.
func (b *builder) wire(end string) (port string, err error) {
	if b.spec.Lab.Delay == 0 && b.spec.Lab.Loss == 0 {
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
		A: end, B: inner, Delay: b.spec.Lab.Delay, Loss: b.spec.Lab.Loss, CPUs: b.lab.place.aside,
	})
	if err != nil {
		return "", fmt.Errorf("impaired link: %w", err)
	}
	b.inst.lines = append(b.inst.lines, l)
	return port, nil
}

// Impair switches on the delay and loss of the instance's wires. Self-tests run before, because their probes do not
// repeat lost packets and do not wait for late ones.
func (i *Instance) Impair() {
	for _, l := range i.lines {
		l.Impair()
	}
}

// unwire removes the impaired links.
func (i *Instance) unwire() {
	for _, l := range i.lines {
		_ = l.Close() // closes its sockets despite an error
	}
	i.lines = nil
}
