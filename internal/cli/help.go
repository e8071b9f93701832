package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Keys of annotations of flags: the value of groupOf is the flag's group in help; isCommon marks a flag of the first page.
const (
	groupOf  = "cnibench/group"
	isCommon = "cnibench/common"
)

// groupOutput is the group of flags that are not settings of a plan.
const groupOutput = "Output and everything else"

// groups are the groups of flags, in the order in which help lists them.
var groups = []string{plan.GroupWhat, plan.GroupTime, plan.GroupLab, plan.GroupCluster, groupOutput}

// groupFlags assigns flags of cmd to the group g of help. common puts them on the first page. It skips flags that cmd lacks.
func groupFlags(cmd *cobra.Command, g string, common bool, names ...string) {
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			continue
		}
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[groupOf] = []string{string(g)}
		if common {
			f.Annotations[isCommon] = nil
		}
	}
}

// hideFlags removes flags from the help of cmd: flags of a plan that the command sets itself.
func hideFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		cmd.Flags().Lookup(name).Hidden = true
	}
}

// addSubcommands adds subcommands to cmd and returns it. cmd itself only fails, and says that a subcommand is required.
func addSubcommands(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Args = refuseUnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return commandUsageError(cmd, errors.New("a subcommand is required"))
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// elsewhere maps commands that people try, but that do not exist, to the command to use instead.
var elsewhere = map[string]string{
	"cnibench findings": "reproduce --result FILE", "cnibench schema": "list schema",
	"cni list": "list recipes", "cni residue": "cni uninstall",
}

// refuseUnknownCommand refuses any argument of a command that has only subcommands. Its error suggests the nearest subcommand.
func refuseUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if at := elsewhere[cmd.Name()+" "+args[0]]; at != "" {
		return commandUsageError(cmd, fmt.Errorf("unknown command %q, did you mean %q?", args[0], at))
	}
	names := each.Of(each.Where(cmd.Commands(), (*cobra.Command).IsAvailableCommand), (*cobra.Command).Name)
	return commandUsageError(cmd, fmt.Errorf("unknown command %q%s", args[0], advice.DidYouMean(args[0], names)))
}

// newArgumentCheck returns a check that refuses fewer than least or more than most arguments. what describes them in the
// error.
func newArgumentCheck(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch n := len(args); {
		case n > 0 && most == 0:
			return commandUsageError(cmd, fmt.Errorf("unexpected argument %q", args[0]))
		case n < least || n > most:
			return commandUsageError(cmd, fmt.Errorf("want %s, and there are %d arguments", what, n))
		}
		return nil
	}
}

// takesNone is the check that refuses any argument.
var takesNone = newArgumentCheck(0, 0, "")

// kinds describes the valid values of a flag, by the flag's type in pflag.
var kinds = map[string]string{"int": "a whole number", "uint": "a whole number", "float64": "a number", "bool": "true or false", "duration": "a duration, such as 30s"}

// improveFlagError makes cobra's errors about flags clearer. It adds the most similar flag to the error about an unknown
// flag, and shortens the error about an invalid value.
func improveFlagError(cmd *cobra.Command, err error) error {
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		switch invalid.GetFlag().Value.(type) {
		case choice, formatOrPlan:
			return invalid.Unwrap()
		}
		if want := kinds[invalid.GetFlag().Value.Type()]; want != "" {
			return fmt.Errorf("--%s: %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := advice.Nearest(name, names); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}

// excluded matches the error of cobra about flags that exclude one another.
var excluded = pattern.New(`^if any flags in the group .* none of the others can be; \[(.*)\] were all set$`)

// improveGroupError shortens cobra's error about flags that exclude one another. It returns other errors as they are.
func improveGroupError(err error) error {
	if m := excluded.FindStringSubmatch(err.Error()); m != nil {
		return errors.New("--" + strings.ReplaceAll(m[1], " ", ", --") + ": want only one of them")
	}
	return err
}

// argumentCompletion returns a shell completion of the arguments of a command: names, and files if how allows them.
func argumentCompletion(names func() []string, how cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return names(), how }
}

// completeFlag lets the shell complete the value of a flag with names. In a list separated by commas it completes the
// last one.
func completeFlag(cmd *cobra.Command, flag string, names func() []string) {
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
		panic("cli: " + err.Error()) // the flag is not defined: a mistake in this package
	}
}
