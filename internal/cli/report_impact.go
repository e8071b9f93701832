package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/impact"
)

// works reads what --impact says; nil if it was not given.
func (a reportArgs) works(cmd *cobra.Command) ([]impact.Work, error) {
	if !cmd.Flags().Changed("impact") {
		return nil, nil
	}
	if !slices.Contains(pageNames, a.format) {
		return nil, usageOf(cmd, fmt.Errorf("--impact is for -f %s, and the format is %s", strings.Join(pageNames, ", "), a.format))
	}
	works, err := impact.Parse(a.impact)
	if err != nil {
		return nil, usageOf(cmd, fmt.Errorf("--impact %q:\n%w", a.impact, err))
	}
	return works, nil
}
