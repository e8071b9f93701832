//go:build !linux

package cli

import "github.com/spf13/cobra"

// hiddenCommands are those that cnibench calls itself with; there are none where it has no lab.
func (p *program) hiddenCommands() []*cobra.Command { return nil }

// agentOf returns nil: agents run on Linux.
func (p *program) agentOf([]string) *cobra.Command { return nil }
