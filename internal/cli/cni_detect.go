package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

// detectLimit bounds a detection, with pods that are waited for.
const detectLimit = 5 * time.Minute

// detectArgs are the flags of cni detect.
type detectArgs struct {
	where  clusterArgs
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

func (p *program) cniDetectCommand() *cobra.Command {
	var a detectArgs
	cmd := &cobra.Command{
		Use: "detect", Short: "Find out which CNI a cluster runs, and in which mode", Long: cniDetectLong,
		Example: "  cnibench cni detect\n  cnibench cni detect --context prod -f json\n  cnibench cni detect --image registry.example/cnibench:1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var faults []error
			if !slices.Contains(documentNames, a.format) {
				faults = append(faults, unknownFormat(a.format, documentNames))
			}
			if len(a.nodes) > 2 {
				faults = append(faults, fmt.Errorf("--nodes has %d names: want one or two", len(a.nodes)))
			}
			if len(a.nodes) > 0 && a.pods.image == "" {
				faults = append(faults, errors.New("--nodes goes with --image"))
			}
			faults = append(faults, a.pods.check()...)
			if err := errors.Join(faults...); err != nil {
				return usageOf(cmd, err)
			}
			return p.cniDetect(cmd.Context(), a)
		},
	}
	a.where.bind(cmd)
	f := cmd.Flags()
	formatFlag(cmd, &a.format, documentNames)
	a.pods.bind(cmd, "`image` of cnibench: look at nodes from pods, too")
	f.StringSliceVar(&a.nodes, "nodes", nil, "with --image: the one or two `nodes` to look at (default the first two that are ready)")
	return cmd
}

func (p *program) cniDetect(parent context.Context, a detectArgs) error {
	ctx, stop := context.WithTimeout(parent, detectLimit)
	defer stop()
	o := a.where.options(p.say)
	o.PullSecrets = a.pods.pull
	s := site{context: a.where.context, kubeconfig: a.where.kubeconfig}
	var err error
	if s.cluster, err = kube.Connect(o); err != nil {
		return configError(err)
	}
	if s.clients, err = detect.ClientsOf(s.cluster.Config()); err != nil {
		return err
	}
	if s.snapshot, err = detect.Read(ctx, s.clients, detect.ReadOptions{}); err != nil {
		return err
	}
	f := detect.Finding{Verdict: detect.Detect(s.snapshot)}
	if a.pods.image != "" {
		look := detect.LookoutOptions{
			Run: s.cluster.Run(), Image: a.pods.image, PullSecrets: s.cluster.PullSecrets(), Nodes: a.nodes, Pods: true, TTL: 2 * detectLimit,
		}
		if f, err = p.prove(ctx, &s, look); err != nil {
			return err
		}
	}
	if err := p.write(a.format, f.Document()); err != nil {
		return err
	}
	switch {
	case len(detect.Mismatches(f.Proofs)) > 0:
		return failed(exitFailed)
	case f.CNI == "":
		return failed(exitInconclusive)
	}
	return nil
}

// prove posts lookouts on the nodes, has them look, and takes them away again.
func (p *program) prove(ctx context.Context, s *site, o detect.LookoutOptions) (found detect.Finding, err error) {
	if len(o.Nodes) == 0 {
		o.Nodes = firstReady(s.snapshot.Nodes, 2)
	}
	if len(o.Nodes) == 0 {
		return found, errors.New("no ready Linux node is known to look at: name one by --nodes")
	}
	p.say("looking at %v from pods", o.Nodes)
	err = p.fromLookouts(ctx, s, o, func(post *detect.Lookout) (err error) {
		_, found.Verdict, found.Proofs, err = detect.Prove(ctx, s.snapshot, detect.Ground{Ends: post.Ends(), Routes: post.Routes()})
		return err
	})
	return found, err
}

// firstReady returns the names of the first n nodes with Linux, in order, that are ready. Cordoned ones come last: they are
// looked at all the same where there are no others.
func firstReady(nodes []detect.Node, n int) []string {
	var names, cordoned []string
	for _, node := range nodes {
		if !node.Ready || !node.Linux() {
			continue
		}
		if node.Cordoned {
			cordoned = append(cordoned, node.Name)
		} else {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(cordoned)
	names = append(names, cordoned...)
	return names[:min(n, len(names))]
}
