package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// idleTime is for how long the load that is not ours is measured.
const idleTime = 300 * time.Millisecond

func (p *program) doctor(ctx context.Context) error {
	findings, err := probe.Check(ctx)
	if err != nil {
		return err
	}
	found, err := probe.Collect(ctx, probe.Collection{Idle: idleTime})
	if err != nil {
		return err
	}
	found[facts.Version] = buildVersion()
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	writeFindings(w, findings)
	able := writeAbilities(w, findings)
	fmt.Fprintln(w, "\nConditions")
	for _, name := range found.Names() {
		fmt.Fprintf(w, "  %s\t%s\n", name, flat(found[name]))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if able == 0 {
		return advice.With(fmt.Errorf("no profile can be raised here"), "run as root, or in a user namespace: unshare -Urnm cnibench doctor; else see what is missing above")
	}
	return nil
}

func writeFindings(w io.Writer, findings []probe.Finding) {
	fmt.Fprintln(w, "Features")
	for _, f := range findings {
		text := f.About
		if f.Missing != "" {
			text += ": " + f.Missing
		}
		if f.WayOut != "" {
			text += " (way out: " + f.WayOut + ")"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Feature, f.Outcome, flat(text))
	}
}

// writeAbilities says of each profile whether it can be raised, and returns how many can.
func writeAbilities(w io.Writer, findings []probe.Finding) int {
	fmt.Fprintln(w, "\nProfiles")
	able := 0
	for _, q := range profile.All() {
		lacks := lacking(q.Needs, findings)
		if len(lacks) > 0 {
			fmt.Fprintf(w, "  %s\tno\tlacks %s\n", q.Name, strings.Join(lacks, ", "))
			continue
		}
		able++
		fmt.Fprintf(w, "  %s\tyes\t%s\n", q.Name, q.Title)
	}
	return able
}

// lacking returns those of needs, and of what everything needs, that are not there. What could not be told is not
// among them: raising the profile will tell.
func lacking(needs []string, findings []probe.Finding) []string {
	var lacks []string
	for _, f := range findings {
		if f.Outcome == probe.No && (f.Feature == "netns" || slices.Contains(needs, f.Feature)) {
			lacks = append(lacks, f.Feature)
		}
	}
	return lacks
}
