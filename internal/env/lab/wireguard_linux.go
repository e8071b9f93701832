package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/wireguardgo"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// WireGuardVerb is the command-line word, followed by a device and its MTU, for which the program must call
// ServeWireGuard.
const WireGuardVerb = "wireguard"

// wireGuardStandIn is the text in reports about WireGuard in user space.
const wireGuardStandIn = "WireGuard by wireguard-go in user space instead of wireguard.ko: each packet passes a process, and costs more"

// ServeWireGuard runs the WireGuard device named by args, with its MTU, in user space until stdin ends.
func ServeWireGuard(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a device and its MTU")
	}
	mtu, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return wireguardgo.Serve(args[0], mtu, stdin, stdout)
}

// withWireGuardFallback returns things with a step in place of each WireGuard device. The step adds the device, in user
// space if the kernel does not support WireGuard.
func (b *builder) withWireGuardFallback(n *Node, things []link.Thing) []link.Thing {
	return each.Of(things, func(t link.Thing) link.Thing {
		w, ok := t.(link.WireGuard)
		if !ok {
			return t
		}
		return link.Step(func(at *link.Handle) error {
			err := at.Add(w)
			if !errors.Is(err, errors.ErrUnsupported) || len(b.lab.options.Program) == 0 {
				return err
			}
			if failed := b.lab.startWireGuard(n, w); failed != nil {
				return fmt.Errorf("%w, and in user space: %w", err, failed)
			}
			if !slices.Contains(b.inst.StandIn, wireGuardStandIn) {
				b.inst.StandIn = append(b.inst.StandIn, wireGuardStandIn)
			}
			return at.Add(w)
		})
	})
}

// startWireGuard starts the process of a device and waits until the device exists. Like the kernel's workers, it may
// use all CPUs and is in no cgroup.
func (l *Lab) startWireGuard(n *Node, w link.WireGuard) error {
	in, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	var said child.Tail
	cmd := exec.Command(l.options.Program[0], WireGuardVerb, w.Name, strconv.Itoa(w.MTU))
	cmd.Env, cmd.Stdin, cmd.Stderr = []string{}, in, &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = l.starter.Start(n.NS, cmd)
	}
	_ = in.Close() // the child has a copy
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	n.attached = append(n.attached, wireGuardProcess{cmd, ours})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != wireguardgo.Ready {
		return errors.Join(fmt.Errorf("start WireGuard: it said %q: %s", line, said.String()), err)
	}
	return nil
}

// wireGuardProcess is the process of a WireGuard device in user space, and the process's stdin.
type wireGuardProcess struct {
	cmd *exec.Cmd
	in  *os.File
}

// Close ends the process, which removes its device.
func (p wireGuardProcess) Close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
