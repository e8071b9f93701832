package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/handover"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// SocketsVerb is the command-line word for which the program must call ServeSockets.
const SocketsVerb = "sockets"

// ServeSockets makes and connects sockets for the lab at the other end of stdin, until stdin is closed.
func ServeSockets(stdin *os.File) error { return handover.Serve(stdin) }

// Dialer makes connections like a process of one host, in the host's namespace. If possible, they are also in the
// node's cgroup, where programs may translate Services.
type Dialer struct {
	host   *Host
	client *handover.Client // nil when the namespace alone is enough
	cmd    *exec.Cmd
	stderr *child.Tail
}

// Dialer returns a dialer of a host. The caller closes it; its process ends with the lab. Without cgroup v2 or
// Options.Program, its connections have the host's namespace but not its cgroup.
func (i *Instance) Dialer(h *Host) (*Dialer, error) {
	d := &Dialer{host: h}
	if h.group == nil || len(i.lab.options.Program) == 0 {
		return d, nil
	}
	near, far, err := handover.Pair()
	if err != nil {
		return nil, err
	}
	d.cmd, d.stderr = exec.Command(i.lab.options.Program[0], SocketsVerb), &child.Tail{}
	d.cmd.Env, d.cmd.Stdin, d.cmd.Stderr = []string{}, far, d.stderr
	err = errors.Join(i.lab.startCommand(h, d.cmd, nil), far.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a process to connect from %s: %w", h.Name, err), near.Close())
	}
	if d.client, err = handover.NewClient(near); err != nil {
		return nil, errors.Join(err, d.cmd.Process.Kill(), d.cmd.Wait())
	}
	return d, nil
}

// Dial connects like net.Dialer, but from the dialer's host.
func (d *Dialer) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	if d.client != nil {
		if conn, err = d.client.Dial(ctx, network, address); err != nil && d.stderr.String() != "" {
			err = fmt.Errorf("%w: %s", err, d.stderr.String())
		}
		return conn, err
	}
	err = d.host.NS.Do(func() error {
		conn, err = (&net.Dialer{Control: sock.HearICMP}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Open returns an unconnected TCP socket of the namespace ns. It has the host's cgroup if Dial's sockets do.
func (d *Dialer) Open(ctx context.Context, network string, ns *netns.NS) (*os.File, error) {
	if d.client != nil {
		return d.client.Open(ctx, network, ns)
	}
	return handover.Open(network, ns)
}

// Close ends the dialer's process. Its connections stay open. Closing a nil dialer does nothing.
func (d *Dialer) Close() error {
	if d == nil || d.client == nil {
		return nil
	}
	err := d.client.Close()
	_ = d.cmd.Process.Kill() // fails if the process has ended
	_ = d.cmd.Wait()         // it was killed
	return err
}
