// Command ipamd replaces the address daemon of the AWS VPC CNI, so that Amazon's own plugin runs in the lab.
//
//	ipamd -first ADDRESS -last ADDRESS [-interface 1|2]
//
// It answers AddNetwork and DelNetwork of the plugin, and gives out the addresses in order. It contacts no cloud and
// makes no devices, routes or rules: those of the node belong to the profile.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	first := flag.String("first", "", "first address")
	last := flag.String("last", "", "last address")
	number := flag.Int("interface", 1, "number of the node's interface that has the addresses")
	socket := flag.String("socket", "/run/aws-node/ipamd.sock", "where the plugin connects")
	flag.Parse()
	a, err := newAddresses(*first, *last, *number)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: ipamd -first ADDRESS -last ADDRESS [-interface NUMBER]:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := listen(*socket)
	if err == nil {
		err = serve(ctx, listener, a)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		os.Exit(1)
	}
}

// newAddresses returns the addresses from first to last, which belong to an interface of the node.
func newAddresses(first, last string, number int) (*addresses, error) {
	a := &addresses{number: number, of: map[string]netip.Addr{}}
	var err error
	if a.first, err = netip.ParseAddr(first); err != nil {
		return nil, err
	}
	if a.last, err = netip.ParseAddr(last); err != nil {
		return nil, err
	}
	if a.last.Less(a.first) || a.first.Is4() != a.last.Is4() || number < 1 {
		return nil, fmt.Errorf("no addresses from %s to %s at interface %d", first, last, number)
	}
	return a, nil
}

// listen creates the socket and its directory.
func listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	return net.Listen("unix", socket)
}

// serve answers at the socket until ctx ends.
func serve(ctx context.Context, listener net.Listener, a *addresses) error {
	server := &http.Server{Handler: handler(a), Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
