//go:build !linux

package cli

import "github.com/spf13/cobra"

// hiddenCommands are those that cnibench calls itself with; there are none where it has no lab.
func (p *program) hiddenCommands() []*cobra.Command { return nil }
