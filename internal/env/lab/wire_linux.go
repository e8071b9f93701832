package lab

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/impair"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// wire puts a wire with the faults that the lab is to have between a host's end in the switch and its port, and returns
// the name of the port. Without faults the end is the port. Pods that hang on the switch by themselves have no such wire.
func (b *builder) wire(end string) (port string, err error) {
	if b.spec.Lab.Delay == 0 && b.spec.Lab.Loss == 0 {
		return end, nil
	}
	inner, port := end+"-w", end+"-p"
	at := b.at[b.inst.Switch]
	if err := at.AddVeth(link.Veth{Name: inner, Peer: port, MTU: b.spec.Lab.MTU}); err != nil {
		return "", err
	}
	if err := errors.Join(at.Up(end), at.Up(inner)); err != nil {
		return "", err
	}
	l, err := impair.Open(b.inst.Switch.NS, impair.Options{
		A: end, B: inner, Delay: b.spec.Lab.Delay, Loss: b.spec.Lab.Loss, CPUs: b.lab.place.aside,
	})
	if err != nil {
		return "", fmt.Errorf("wire with faults: %w", err)
	}
	b.inst.lines = append(b.inst.lines, l)
	return port, nil
}

// unwire ends the wires with faults.
func (i *Instance) unwire() {
	for _, l := range i.lines {
		_ = l.Close() // its sockets are gone whatever it says
	}
	i.lines = nil
}
