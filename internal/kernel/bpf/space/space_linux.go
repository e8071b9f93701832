package space

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/link"
)

// Tracker holds the two loaded programs of this package. Close detaches and unloads them.
type Tracker struct {
	objects programsObjects
	link    link.Link
}

// Load loads the programs. It fails on a kernel without BTF, or if this process may not load BPF programs.
func Load() (*Tracker, error) {
	t := &Tracker{}
	if err := loadProgramsObjects(&t.objects, nil); err != nil {
		return nil, fmt.Errorf("load programs that follow the network namespace of packets: %w", err)
	}
	return t, nil
}

// Follow begins to store the namespace of each received packet, which costs every packet of the machine some time.
func (t *Tracker) Follow() error {
	l, err := link.AttachTracing(link.TracingOptions{Program: t.objects.CnibenchSpace})
	if err != nil {
		return fmt.Errorf("follow the network namespace of packets: %w", err)
	}
	t.link = l
	return nil
}

// Rest detaches the program that Follow attached. It does nothing if Follow was not called.
func (t *Tracker) Rest() error {
	if t.link == nil {
		return nil
	}
	err := t.link.Close()
	t.link = nil
	return err
}

// Output sets the perf event that receives the namespace with each sample of a CPU. event is its file descriptor.
func (t *Tracker) Output(cpu, event int) error {
	return t.objects.Rings.Put(uint32(cpu), uint32(event))
}

// Sampled returns the file descriptor of the program that adds the namespace to samples. The caller attaches the program
// to each perf event that samples.
func (t *Tracker) Sampled() int { return t.objects.CnibenchSample.FD() }

// Close detaches and unloads the programs.
func (t *Tracker) Close() error { return errors.Join(t.Rest(), t.objects.Close()) }
