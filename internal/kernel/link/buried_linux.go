package link

import (
	"context"
	"errors"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Buried waits until the kernel has removed every namespace that was closed before the call. The kernel removes them
// in the background, one batch after the other, which takes CPU time. It fails if ctx ends.
func Buried(ctx context.Context) error {
	// The first of two namespaces may be in the same batch as earlier ones. The second is in a later batch.
	for range 2 {
		if err := awaitBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitBatch waits until the kernel has removed one more batch of namespaces. It creates a veth pair with its far end in
// a new namespace, closes that namespace, and waits until the near end is gone.
func awaitBatch(ctx context.Context) error {
	near, err := netns.New()
	if err != nil {
		return err
	}
	defer near.Close()
	far, err := netns.New()
	if err != nil {
		return err
	}
	at, err := Open(near)
	if err != nil {
		return errors.Join(err, far.Close())
	}
	defer at.Close()
	const end = "end"
	pair := netlink.NewVeth(deviceAttrs(end, 0, nil))
	pair.PeerName, pair.PeerNamespace = end, netlink.NsFd(far.FD())
	if err := errors.Join(at.makeDevice(pair), far.Close()); err != nil {
		return err
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		if _, err := at.nl.LinkByName(end); errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}
