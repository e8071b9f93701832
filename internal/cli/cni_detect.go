package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/clusters"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

// detectLimit bounds a detection, including the wait for its pods.
const detectLimit = 5 * time.Minute

// detection is one invocation of cni detect.
type detection struct {
	*program
	where  kube.Location
	format string
	pods   podArgs
	nodes  []string
}

const cniDetectLong = `Find out which CNI a cluster runs, in which mode, and which profile that is. It reads the cluster's objects and, where
permitted, the status of the CNI's agents. Each setting is shown as asked for and as in force, with its source. What could
not be read is listed.

Without --image nothing is created in the cluster. With --image, pods with the rights to see frames and rules inspect two
nodes from inside, prove the findings on packets, and are removed.

The exit code is 1 if a claim was disproved, and 4 if the CNI is unknown.`

func cniDetectCommand(p *program) *cobra.Command {
	a := detection{program: p}
	cmd := &cobra.Command{
		Use: "detect", Short: "Find out which CNI a cluster runs, and in which mode", Long: cniDetectLong,
		Example: "  cnibench cni detect\n  cnibench cni detect --context prod -f json",
		Args:    takesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	declareLocationFlags(cmd, &a.where)
	f := cmd.Flags()
	declareFormatFlag(cmd, &a.format, documentNames)
	a.pods.declareFlags(cmd, "`image` of cnibench: look at nodes from pods, too")
	f.StringSliceVar(&a.nodes, "nodes", nil, "with --image: the one or two `nodes` to look at (default the first two that are ready)")
	return cmd
}

func (a *detection) run(cmd *cobra.Command) error {
	var faults []error
	if len(a.nodes) > 2 {
		faults = append(faults, fmt.Errorf("--nodes has %d names: want one or two", len(a.nodes)))
	}
	if len(a.nodes) > 0 && a.pods.image == "" {
		faults = append(faults, errors.New("--nodes goes with --image"))
	}
	faults = append(faults, a.pods.argFaults()...)
	if err := errors.Join(faults...); err != nil {
		return commandUsageError(cmd, err)
	}
	ctx, stop := context.WithTimeout(cmd.Context(), detectLimit)
	defer stop()
	f, err := clusters.Detect(ctx, clusters.DetectOptions{
		Location: a.where, PullSecrets: a.pods.pull,
		Lookouts: detect.LookoutOptions{Image: a.pods.image, Nodes: a.nodes, Pods: true, TTL: 2 * detectLimit},
	}, a.clusterOptions(a.say))
	if err != nil {
		return err
	}
	if err := a.writeDocument(a.format, f.Document()); err != nil {
		return err
	}
	switch {
	case len(detect.Mismatches(f.Proofs)) > 0:
		return quietError(exitFailed)
	case f.CNI == "":
		return quietError(exitInconclusive)
	}
	return nil
}
