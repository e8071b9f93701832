package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// plantCommand returns the command that keeps a CNI configuration and routes on the node of its pod until a signal ends it.
// With --check it changes nothing, and fails unless everything is in place.
func plantCommand() *cobra.Command {
	specs, dir, ready := recipe.PlantSpecs, recipe.PlantDir, recipe.PlantReady
	check := false
	cmd := &cobra.Command{
		Use: recipe.PlantVerb + " [NODE]", Short: "Keep a CNI plugin configured on this node", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check {
				_, err := os.Stat(ready)
				return err
			}
			if len(args) == 0 {
				return commandUsageError(cmd, errors.New("which node?"))
			}
			text, err := os.ReadFile(filepath.Join(specs, args[0]))
			if err != nil {
				return err
			}
			spec, err := recipe.ParsePlant(text)
			if err != nil {
				return err
			}
			return keepPlanted(cmd.Context(), spec, dir, ready)
		},
	}
	cmd.Flags().StringVar(&specs, "specs", specs, "`directory` with a file for each node")
	cmd.Flags().StringVar(&dir, "dir", dir, "`directory` of CNI configuration")
	cmd.Flags().StringVar(&ready, "ready", ready, "`file` to make when everything is planted")
	cmd.Flags().BoolVar(&check, "check", false, "only say whether everything is planted")
	return cmd
}

// keepPlanted adds the routes of s and writes its CNI configuration into dir, then creates the file ready. When ctx ends, it
// removes the configuration and the routes. It neither adds nor removes a route that existed before.
func keepPlanted(ctx context.Context, s recipe.PlantSpec, dir, ready string) (err error) {
	here, err := netns.Here()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.Close()) }()
	h, err := link.Open(here)
	if err != nil {
		return err
	}
	defer h.Close()
	there, err := h.Routes()
	if err != nil {
		return err
	}
	devices, err := h.Devices()
	if err != nil {
		return err
	}
	var made []recipe.PlantRoute
	defer func() {
		for _, r := range made {
			err = errors.Join(err, h.RemoveRoute(r.To, r.Via))
		}
	}()
	for _, r := range s.Routes {
		if slices.ContainsFunc(there, func(q link.Route) bool { return q.To == r.To && q.Via == r.Via }) {
			continue
		}
		dev := deviceForNode(devices, r.Via)
		if dev == "" {
			return fmt.Errorf("no device is on the network of %v, the node with %v", r.Via, r.To)
		}
		if err := h.Add(link.Route{To: r.To, Via: r.Via, Dev: dev}); err != nil {
			return err
		}
		made = append(made, r)
	}
	if err := s.Write(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Remove(dir)) }()
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// deviceForNode returns the device that is on the same network as a node, "" if none is.
func deviceForNode(devices []link.Device, node netip.Addr) string {
	for _, d := range devices {
		for _, a := range d.Addresses {
			if a.Contains(node) {
				return d.Name
			}
		}
	}
	return ""
}
