package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// world is where the tools run: two namespaces joined by a veth pair, and one CPU.
type world struct {
	client, server *netns.NS
	starter        *netns.Starter
	cpu            int
	port           int // of the run before
}

const (
	clientAddress = "10.201.0.1"
	serverAddress = "10.201.0.2"
	firstPort     = 20_000
	ethernetMTU   = 1500
)

func newWorld(cpu int) (*world, error) {
	w := &world{cpu: cpu, port: firstPort, starter: netns.NewStarter()}
	if err := w.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("make two namespaces: %w", err), w.close())
	}
	return w, nil
}

func (w *world) build() (err error) {
	if w.client, err = netns.New(); err != nil {
		return err
	}
	if w.server, err = netns.New(); err != nil {
		return err
	}
	near, err := link.Open(w.client)
	if err != nil {
		return err
	}
	defer near.Close()
	far, err := link.Open(w.server)
	if err != nil {
		return err
	}
	defer far.Close()
	if err := near.AddVeth(link.Veth{Name: "eth0", Peer: "eth0", PeerIn: far, MTU: ethernetMTU}); err != nil {
		return err
	}
	for _, end := range []struct {
		handle  *link.Handle
		address string
	}{{near, clientAddress}, {far, serverAddress}} {
		if err := end.handle.Up(link.Loopback); err != nil {
			return err
		}
		prefix := netip.PrefixFrom(netip.MustParseAddr(end.address), 24)
		if err := end.handle.AddAddress("eth0", prefix); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() error {
	w.starter.Close()
	return errors.Join(w.client.Close(), w.server.Close())
}

// nextPort returns a port that no run has used, so that none waits for another's sockets.
func (w *world) nextPort() int {
	w.port++
	return w.port
}

// command is a process of a peer.
func command(ctx context.Context, argv []string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.WaitDelay = time.Second
	return cmd, &out, &complaint
}

// start starts cmd in ns on the world's CPU.
func (w *world) start(ns *netns.NS, cmd *exec.Cmd) error {
	if err := w.starter.StartOn(ns, cmd, []int{w.cpu}); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return nil
}

// listening waits until something listens on a TCP port of ns.
func (w *world) listening(ctx context.Context, ns *netns.NS, port int) error {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		var tables []byte
		err := ns.Do(func() error {
			for _, file := range []string{"tcp", "tcp6"} {
				b, err := os.ReadFile("/proc/thread-self/net/" + file)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
				tables = append(tables, b...)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look for a listener on port %d: %w", port, err)
		}
		if listens(tables, port) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on port %d: %w", port, ctx.Err())
		case <-look.C:
		}
	}
}
