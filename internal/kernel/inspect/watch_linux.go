package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// batch is how many frames are read before they are counted.
const batch = 1024

// Watch sees until ctx ends which frames on a device carry the mark, and in what they are wrapped. Those that are not
// wrapped go to or come from the UDP port; with port 0 any will do. It needs CAP_NET_RAW.
func Watch(ctx context.Context, device string, mark []byte, port uint16) (netstate.Wire, error) {
	ns, err := netns.Here()
	if err != nil {
		return netstate.Wire{}, err
	}
	defer ns.Close()
	c, err := capture.Open(ns, capture.Options{Device: device, Mark: mark})
	if err != nil {
		return netstate.Wire{}, advice.With(err, "frames are seen with the capability NET_RAW, in a host-network pod those of the node")
	}
	defer c.Close()
	t := tally{port: port, marked: map[netstate.Wrapping]int{}, sealed: map[netstate.Wrapping]int{}}
	wire := netstate.Wire{Device: device}
	for {
		n := 0
		frames, err := c.Until(ctx, func(capture.Frame) bool { n++; return n == batch })
		for i := range frames {
			t.add(&frames[i])
		}
		var lost *capture.LostError
		if errors.As(err, &lost) {
			wire.Lost += lost.Frames
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil && lost == nil {
			return netstate.Wire{}, fmt.Errorf("watch %s: %w", device, err)
		}
	}
	wire.Marked, wire.Sealed = sorted(t.marked), sorted(t.sealed)
	return wire, nil
}
