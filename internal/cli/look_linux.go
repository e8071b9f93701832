package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/kernel/inspect"
)

// look is one invocation of look.
type look struct {
	options    inspect.Options
	echo, port uint16
	mtu, send  string
	messages   struct {
		to     string
		length int
	}
	wire   string
	count  bool
	serve  uint16
	dial   []string
	mark   string
	during time.Duration
}

const lookLong = `Print one JSON document of what is visible of the network here: kernel, devices, routes, rules, BPF programs, and what
may not be seen, with the reason. A run starts it in its pods.

With --echo, --mtu, --content, --send or --wire it does one thing with other places instead: answer marked datagrams,
find the largest packet that gets through, compare the content of messages, send marked datagrams, or see on a device in
what they are wrapped. With
--count it prints what the kernel has counted here, and what limits or drops packets; --serve accepts connections, --dial
connects.`

func lookCommand() *cobra.Command {
	var a look
	cmd := &cobra.Command{
		Use: "look", Short: "Say what is visible of the network here", Long: lookLong, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&a.options.CNI, "cni", "/etc/cni/net.d", "`directory` of CNI configuration")
	f.BoolVar(&a.options.Pod, "pod", false, "this network namespace is a pod's: its loopback may carry datagrams")
	f.Uint16Var(&a.echo, "echo", 0, "answer marked datagrams on this UDP `port`")
	f.StringVar(&a.mtu, "mtu", "", "find the largest packet that gets through to `address:port`")
	f.StringVar(&a.messages.to, "content", "", "send messages with known content to `address:port`")
	f.IntVar(&a.messages.length, "length", 1280, "with --content: the largest packet in `bytes`")
	f.StringVar(&a.send, "send", "", "send marked datagrams to `address:port`")
	f.StringVar(&a.wire, "wire", "", "see which frames of `device` carry the mark")
	f.Uint16Var(&a.serve, "serve", 0, "accept connections on this TCP `port`")
	f.StringSliceVar(&a.dial, "dial", nil, "connect to each `address:port` several times")
	f.BoolVar(&a.count, "count", false, "print the kernel's counters here")
	f.Uint16Var(&a.port, "port", 0, "with --wire: the UDP `port` of frames that nothing is wrapped around")
	f.StringVar(&a.mark, "mark", "", "what the datagrams begin with: `hex`, 8 bytes or more")
	f.DurationVar(&a.during, "for", 10*time.Second, "how long --echo, --send and --wire run")
	cmd.MarkFlagsMutuallyExclusive("count", "serve", "dial", "echo", "mtu", "content", "send", "wire")
	return cmd
}

// errEnough is the cause of the context's end when the time of --for is over.
var errEnough = errors.New("enough")

func (a *look) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	limit, stop := context.WithTimeoutCause(ctx, a.during, errEnough)
	defer stop()
	mark, bad := hex.DecodeString(a.mark)
	to, wrong := netip.ParseAddrPort(a.mtu + a.messages.to + a.send)
	var seen any
	var err error
	switch {
	case a.count:
		seen, err = inspect.Count()
	case a.serve != 0:
		seen, err = map[string]bool{"served": true}, inspect.Accept(limit, int(a.serve))
	case len(a.dial) > 0:
		seen = inspect.Dial(ctx, a.dial)
	case a.echo == 0 && a.mtu == "" && a.messages.to == "" && a.send == "" && a.wire == "":
		seen, err = inspect.Gather(ctx, a.options)
	case bad != nil:
		return commandUsageError(cmd, fmt.Errorf("--mark: %w", bad))
	case len(mark) < inspect.MarkLength:
		return commandUsageError(cmd, fmt.Errorf("--mark has %d bytes: want %d or more", len(mark), inspect.MarkLength))
	case a.during <= 0:
		return commandUsageError(cmd, errors.New("--for must be more than nothing"))
	case a.echo != 0:
		var n int
		n, err = inspect.Echo(limit, int(a.echo), mark)
		seen = map[string]int{"answered": n}
	case a.wire != "":
		seen, err = inspect.Watch(limit, a.wire, mark, a.port)
	case wrong != nil:
		return commandUsageError(cmd, wrong)
	case a.mtu != "":
		seen, err = inspect.PathMTU(ctx, to, mark)
	case a.messages.to != "":
		seen, err = inspect.Content(ctx, to, mark, a.messages.length)
	default:
		seen, err = inspect.Send(limit, to, mark)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(seen)
}
