package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

type findingsArgs struct {
	format, claims string
	sources        []string
}

func (p *program) findingsCommand() *cobra.Command {
	var a findingsArgs
	cmd := &cobra.Command{
		Use:   "findings [FILE]",
		Short: "Judge published claims against a result",
		Long: `Judge the conclusions of published comparisons against a result file (` + DefaultResult + ` if none is named): reproduced,
reproduced in part, contradicted, inconclusive, or not testable here, each with its evidence. In part: the direction
holds and the size does not, or not all was measured. The plans under examples/ measure what the claims speak of.

` + inputs,
		Example: "  cnibench findings --source rke2 result.jsonl\n  cnibench findings -f json result.jsonl | jq '.findings[].statement'",
		Args:    atMostOne("a claim is judged by one result at a time"),
		RunE: func(cmd *cobra.Command, files []string) error {
			return p.findings(cmd, fileOf(files), a)
		},
	}
	f := cmd.Flags()
	formatFlag(cmd, &a.format, documentNames)
	f.StringVar(&a.claims, "claims", "", "`file` of claims in place of the published ones")
	// Every start of the program comes by here, each agent's too, so the claims are not read to list their sources.
	f.StringSliceVar(&a.sources, "source", nil, "`ids` of the sources to judge, such as rke2; a wrong one is answered with all")
	complete(cmd, "source", func() []string { return sourceIDs(findings.Published()) })
	return cmd
}

func sourceIDs(c findings.Claims) []string {
	return each.Of(c.Sources, func(s findings.Source) string { return s.ID })
}

func (p *program) findings(cmd *cobra.Command, name string, a findingsArgs) error {
	claims, err := readClaims(a)
	if err != nil {
		return usage(err)
	}
	side, err := p.side(name, 0)
	if err != nil {
		return usage(err)
	}
	return p.write(a.format, report.BuildFindings(claims.Sources, findings.Judge(side.Analysis, claims.Claims)))
}

// readClaims returns the claims of the sources that were asked for.
func readClaims(a findingsArgs) (findings.Claims, error) {
	all := findings.Published()
	if a.claims != "" {
		f, err := os.Open(a.claims)
		if err != nil {
			return all, fmt.Errorf("open claims: %w", err)
		}
		defer f.Close() // it was only read
		if all, err = findings.Read(a.claims, f); err != nil {
			return all, err
		}
	}
	if len(a.sources) == 0 {
		return all, nil
	}
	ids := sourceIDs(all)
	for _, id := range a.sources {
		if !slices.Contains(ids, id) {
			return all, fmt.Errorf("there is no source %q: there are %s", id, strings.Join(ids, ", "))
		}
	}
	wanted := func(id string) bool { return slices.Contains(a.sources, id) }
	all.Sources = slices.DeleteFunc(all.Sources, func(s findings.Source) bool { return !wanted(s.ID) })
	all.Claims = slices.DeleteFunc(all.Claims, func(c findings.Claim) bool { return !wanted(c.Source) })
	return all, nil
}
