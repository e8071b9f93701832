package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/kube"
	"github.com/cnibench/cnibench/internal/kube/detect"
)

const (
	// detectLimit bounds a detection, with pods that are waited for.
	detectLimit = 5 * time.Minute
	// lookoutLimit bounds the removal of those pods, also after an interrupt.
	lookoutLimit = time.Minute
)

// detectFormats write what was found, by name.
var detectFormats = map[string]func(io.Writer, detect.Finding) error{"text": detect.Text, "json": detect.JSON}

// detectArgs are the flags of cni detect.
type detectArgs struct {
	where  clusterArgs
	format string
	image  string
	nodes  []string
}

const cniDetectLong = `Find out which CNI a cluster runs, in which mode, and which profile that is: from the objects of the cluster and, where
its pods may be asked, from what the CNI's agents say. What is asked for and what is in force stand side by side, each
with where it was read; what could not be read is listed.

Without --image nothing is made in the cluster. With it, pods with the rights to see frames and rules look at two nodes
from inside, prove on packets what was found, and are removed.

The exit code is 1 if a claim was disproved, and 4 if the CNI could not be found out.`

func (p *program) cniDetectCommand() *cobra.Command {
	a := detectArgs{format: "text"}
	cmd := &cobra.Command{
		Use: "detect", Short: "Find out which CNI a cluster runs, and in which mode", Long: cniDetectLong,
		Example: "  cnibench cni detect\n  cnibench cni detect --context prod -f json\n  cnibench cni detect --image registry.example/cnibench:1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case detectFormats[a.format] == nil:
				return usageOf(cmd, fmt.Errorf("unknown format %q: want text or json", a.format))
			case len(a.nodes) > 2:
				return usageOf(cmd, fmt.Errorf("--nodes has %d names: want one or two", len(a.nodes)))
			case len(a.nodes) > 0 && a.image == "":
				return usageOf(cmd, errors.New("--nodes goes with --image"))
			}
			return p.cniDetect(cmd.Context(), a)
		},
	}
	a.where.bind(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.format, "format", "f", a.format, "`format`: text or json")
	f.StringVar(&a.image, "image", "", "`image` of cnibench: look at nodes from pods, too")
	f.StringSliceVar(&a.nodes, "nodes", nil, "with --image: the one or two `nodes` to look at (default the first two that are ready)")
	complete(cmd, "format", func() []string { return []string{"text", "json"} })
	return cmd
}

func (p *program) cniDetect(parent context.Context, a detectArgs) error {
	ctx, stop := context.WithTimeout(parent, detectLimit)
	defer stop()
	cluster, err := kube.Connect(a.where.options(p.say))
	if err != nil {
		return configError(err)
	}
	clients, err := detect.ClientsOf(cluster.Config())
	if err != nil {
		return err
	}
	s, err := detect.Read(ctx, clients, detect.ReadOptions{})
	if err != nil {
		return err
	}
	f := detect.Finding{Verdict: detect.Detect(s)}
	if a.image != "" {
		if f, err = p.prove(ctx, clients, s, a); err != nil {
			return err
		}
	}
	if err := detectFormats[a.format](p.stdout, f); err != nil {
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
func (p *program) prove(ctx context.Context, clients detect.Clients, s detect.Snapshot, a detectArgs) (found detect.Finding, err error) {
	nodes := a.nodes
	if len(nodes) == 0 {
		nodes = firstReady(s.Nodes, 2)
	}
	if len(nodes) == 0 {
		return found, errors.New("no ready node is known to look at: name one by --nodes")
	}
	p.say("looking at %v from pods", nodes)
	post, err := detect.Post(ctx, clients, detect.LookoutOptions{Run: kube.RunID(), Image: a.image, Nodes: nodes, Pods: true, TTL: 2 * detectLimit})
	if err != nil {
		return found, err
	}
	defer func() {
		limit, stop := context.WithTimeout(context.WithoutCancel(ctx), lookoutLimit)
		defer stop()
		err = errors.Join(err, post.Close(limit))
	}()
	_, v, proofs, err := detect.Prove(ctx, s, detect.Ground{Ends: post.Ends(), Routes: post.Routes()})
	return detect.Finding{Verdict: v, Proofs: proofs}, err
}

// firstReady returns the names of the first n nodes, in order, that are ready.
func firstReady(nodes []detect.Node, n int) []string {
	var names []string
	for _, node := range nodes {
		if node.Ready {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names[:min(n, len(names))]
}
