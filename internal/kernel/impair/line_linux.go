package impair

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Options define what a line does to the frames from A to B.
type Options struct {
	// A and B are the names of the two devices, which must be up and unused.
	A, B string
	// Delay is the delay of each frame from A to B; 0 means none.
	Delay time.Duration
	// Loss is the share of frames from A to B that are lost, 0 to 1.
	Loss float64
	// CPUs are the CPUs for the line's threads; empty means any. The threads disturb least on CPUs without load.
	CPUs []int
}

// Line is a running connection between two devices. Close it after use.
type Line struct {
	forth, back *pipe
	threads     sync.WaitGroup
}

// Open connects the devices A and B of ns. ns must outlive the line. Delay and Loss apply only after Impair. Open fails
// if a device is missing or an option is out of range.
func Open(ns *netns.NS, o Options) (*Line, error) {
	if o.Loss < 0 || o.Loss > 1 || o.Delay < 0 {
		return nil, fmt.Errorf("join %s and %s: a loss of %v and a delay of %v cannot be", o.A, o.B, o.Loss, o.Delay)
	}
	var a, b int
	err := ns.Do(func() (err error) {
		if a, err = openPacketSocket(o.A); err != nil {
			return err
		}
		if b, err = openPacketSocket(o.B); err != nil {
			return errors.Join(err, unix.Close(a))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("join %s and %s: %w", o.A, o.B, err)
	}
	l := &Line{forth: newPipe(a, b, o), back: newPipe(b, a, Options{CPUs: o.CPUs})}
	failed := make(chan error, 2)
	for _, p := range []*pipe{l.forth, l.back} {
		l.threads.Go(func() { p.carryFrames(failed) })
	}
	if err := errors.Join(<-failed, <-failed); err != nil {
		return nil, errors.Join(fmt.Errorf("join %s and %s: %w", o.A, o.B, err), l.Close())
	}
	return l, nil
}

// Impair applies Delay and Loss from now on.
func (l *Line) Impair() error {
	l.forth.impaired.Store(true)
	return nil
}

// Close ends the line and waits for its threads; delayed frames are lost.
func (l *Line) Close() error {
	l.forth.over.Store(true)
	l.back.over.Store(true)
	l.threads.Wait()
	return errors.Join(os.NewSyscallError("close", unix.Close(l.forth.from)), os.NewSyscallError("close", unix.Close(l.forth.to)))
}
