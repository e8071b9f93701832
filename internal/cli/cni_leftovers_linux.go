package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/inspect"
)

// leftoversCommand returns the command that prints, as JSON, what earlier CNIs may have left on this node. With --run it
// runs shell commands instead, with the node's root as their root directory.
func leftoversCommand() *cobra.Command {
	var root string
	var commands []string
	cmd := &cobra.Command{
		Use: recipe.Leftovers, Short: "Say what of a CNI's things is visible on this node", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(commands) > 0 {
				return runChrooted(cmd.Context(), root, commands, cmd.OutOrStdout())
			}
			seen, err := inspect.Gather(cmd.Context(), inspect.Options{CNI: root + "/etc/cni/net.d"})
			if err != nil {
				return err
			}
			n := residue.Node{Looked: true, Sight: seen}
			n.Files, n.Unseen = residue.Files(root)
			return json.NewEncoder(cmd.OutOrStdout()).Encode(n)
		},
	}
	cmd.Flags().StringVar(&root, "root", "/", "`directory` where the root of the node is mounted")
	cmd.Flags().StringArrayVar(&commands, "run", nil, "run a shell `command` in that root instead; may be repeated")
	return cmd
}

// runChrooted runs every command with root as its root directory, even if an earlier one has failed. The error names the
// commands that failed.
func runChrooted(ctx context.Context, root string, commands []string, out io.Writer) error {
	var errs []error
	for _, text := range commands {
		c := exec.CommandContext(ctx, "/bin/sh", "-c", text)
		child.Chroot(c, root)
		c.Dir, c.Env = "/", []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		said, err := c.CombinedOutput()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", text, err, bytes.TrimSpace(said)))
			continue
		}
		fmt.Fprintf(out, "done: %s\n", text)
	}
	return errors.Join(errs...)
}
