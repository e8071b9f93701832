// Package serve answers HTTP requests with results: an index of the result files under the paths that it was given, the
// report of each as a page, and the numbers of the last finished ones for Prometheus and what scrapes like it.
//
// A request looks at the files anew: what has changed since (by size, time and inode) is read again, everything else
// comes from a cache of bounded size. A name in a request is never made into a path: it is looked up in the list of what
// lies under the paths (files.go), and a directory is opened so that no link leads out of it. What a file is comes from
// its first and last line (head.go); only what is shown is read whole, one file at a time.
//
// It is not a store: it reads what cnibench run wrote, and never writes.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Limits of the server.
const (
	maxConnections = 128
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	// writeTimeout holds the time that a result of the largest size is read in.
	writeTimeout = 3 * time.Minute
	idleTimeout  = time.Minute
	// closing is how long requests under way may take once the server is to end.
	closing = 5 * time.Second
)

// DefaultListen is the address that is listened on when none is said.
const DefaultListen = "127.0.0.1:9464"

// Options say what is served where.
type Options struct {
	// Listen is host:port; a port of 0 is chosen. (optional: DefaultListen)
	Listen string
	// Paths are files and directories; of a directory, its *.jsonl.
	Paths []string
	// Say is told where the server listens and what is doubtful about that.
	Say func(format string, args ...any)
}

// AddressError is an address that cannot be listened on.
type AddressError struct {
	Address string
	Err     error
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("listen on %q: %v", e.Address, e.Err)
}

func (e *AddressError) Unwrap() error { return e.Err }

// Run serves until ctx is done; requests under way may end then. It returns an *AddressError or a *PathError for what it
// cannot use.
func Run(ctx context.Context, o Options) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	site, err := New(work, o.Paths)
	if err != nil {
		return err
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	var listening net.ListenConfig
	ln, err := listening.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return advice.With(&AddressError{o.Listen, reason(err)}, "--listen takes host:port, such as "+DefaultListen)
	}
	if !loopback(ln.Addr()) {
		o.Say("%s is reachable from the network, and whoever reaches it can read every result: it asks for no password", ln.Addr())
	}
	o.Say("results are at http://%s/, metrics at http://%s/metrics", ln.Addr(), ln.Addr())
	server := &http.Server{
		Handler: site, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	return until(ctx, server, netutil.LimitListener(ln, maxConnections), stop)
}

// until serves on ln until ctx is done, then ends in order; stop ends the reading of files.
func until(ctx context.Context, server *http.Server, ln net.Listener, stop func()) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	context.AfterFunc(grace, stop)
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("end of the server: %w", err)
	}
	return nil
}

// loopback says whether only this machine reaches a.
func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// reason is the cause of an error of the operating system without the names that it repeats.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
