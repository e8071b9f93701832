package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/serve"
)

const serveLong = `Serve results over HTTP until interrupted: an index at /, the report of each file at /report/NAME, and at /metrics the
numbers of the newest finished result of each plan and environment, for Prometheus and what scrapes like it.

A PATH is a result file or a directory, of which every *.jsonl is served. Files are looked at anew with each request.
There is no password and no encryption: listen elsewhere than on loopback only where everybody may read the results.`

func (p *program) serveCommand() *cobra.Command {
	o := serve.Options{Say: func(format string, args ...any) { fmt.Fprintf(p.stderr, "cnibench: "+format+"\n", args...) }}
	cmd := &cobra.Command{
		Use:     "serve PATH...",
		Short:   "Serve results to browsers and Prometheus",
		Long:    serveLong,
		Example: "  cnibench serve results\n  cnibench serve --listen 127.0.0.1:9000 result.jsonl /var/lib/cnibench",
		Args: func(cmd *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				return usageOf(cmd, errors.New("name at least one result file or directory"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			o.Paths = paths
			err := serve.Run(cmd.Context(), o)
			var path *serve.PathError
			var address *serve.AddressError
			if errors.As(err, &path) || errors.As(err, &address) {
				return usage(err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", serve.DefaultListen, "`address` to listen on, host:port; a port of 0 is chosen")
	return cmd
}
