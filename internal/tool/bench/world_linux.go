package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// world is where the tools run: two namespaces joined by a veth pair, and one CPU.
type world struct {
	client, server *netns.NS
	starter        *netns.Starter
	cpu            int
	// agent is the command line of an agent; dir has the C program and strace's tables.
	agent []string
	dir   string
}

const (
	clientAddress = "10.201.0.1"
	serverAddress = "10.201.0.2"
	ethernetMTU   = 1500
)

func newWorld(cpu int, agent []string, dir string) (*world, error) {
	w := &world{cpu: cpu, agent: agent, dir: dir, starter: netns.NewStarter()}
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
	if err := near.Add(link.Veth{Name: "eth0", Peer: "eth0", PeerIn: far, MTU: ethernetMTU}); err != nil {
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
		if err := end.handle.Add(link.Address{Dev: "eth0", Addr: prefix}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() error {
	w.starter.Close()
	return errors.Join(w.client.Close(), w.server.Close())
}

// compile compiles the C program into the directory of the world.
func (w *world) compile(ctx context.Context) error {
	source := filepath.Join(w.dir, "pingpong.c")
	if err := os.WriteFile(source, pingpongSource, 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-o", filepath.Join(w.dir, pingpong), source).CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
