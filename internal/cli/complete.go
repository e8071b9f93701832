package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// complete lets the shell complete the values of a flag, each of a list that is separated by commas.
func complete(cmd *cobra.Command, flag string, names func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before, last := "", typed
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			before, last = typed[:i+1], typed[i+1:]
		}
		var out []string
		for _, n := range names() {
			if strings.HasPrefix(n, last) && !slices.Contains(strings.Split(before, ","), n) {
				out = append(out, before+n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic("cli: " + err.Error()) // the flag is not there: a mistake in this package
	}
}
