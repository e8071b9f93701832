package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// collected is how often a worker goes through the elements of a set.
const collected = 20 * time.Millisecond

// elements are the cost of a kernel worker: nftables goes through the elements of a set in one, to remove those that have timed out. No
// task of the path pays for it. The worker is on the first CPU, apart from the load: beside load threads, which go before others on
// their CPU, it would get 1 % of the time whatever the number of elements.
var elements = &kind{
	name: fmt.Sprintf("elements of a set that a kernel worker goes through every %s", collected), probe: 20_000, plant: plantElements, standing: true,
}

// plantElements replaces the set of a node by one of n elements, which stay for an hour. A worker runs on the CPU that its set came from.
func plantElements(ctx context.Context, node *netns.NS, n int) (io.Closer, error) {
	table := nft.NewTable(nft.IPv4, "planted")
	set := table.Set("elements", nft.Addr)
	set.Timeout, set.Collect = time.Hour, collected
	for i := range n {
		set.Insert(address(i))
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := thread.SetCPUs([]int{0})
		if err == nil {
			err = nft.Replace(ctx, node, table)
		}
		done <- err
	}()
	return nil, <-done
}

// address is the address of a number, of a network that no packet is from.
func address(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 240<<24+uint32(i))
	return netip.AddrFrom4(b)
}
