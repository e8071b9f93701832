package cli

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/profile"
)

// labArgs has the flags that lab test and lab up share.
type labArgs struct {
	*program
	plan    planArgs
	verbose bool
}

// declareFlags adds the flags of the lab's settings to cmd, --verbose, and --profiles if profiles is true.
func (a *labArgs) declareFlags(cmd *cobra.Command, profiles bool) {
	a.plan.declareSettings(cmd, func(s plan.Setting) bool {
		return s.Group() == plan.GroupLab || profiles && s.Key == "profiles"
	})
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "if the kernel refuses a BPF program, print its verifier's whole log to stderr")
}

func labCommand(p *program) *cobra.Command {
	return addSubcommands(&cobra.Command{
		Use: "lab", Short: "Raise the lab by hand, test it, look into it",
		Example: "  sudo cnibench lab test\n  sudo cnibench lab up calico-vxlan",
	}, labTestCommand(p), labUpCommand(p), labExecCommand())
}

const labTestLong = `Raise profiles and let each prove on real packets that it is what it claims: what is on the wire between nodes,
which connections are tracked, what source address a backend sees. Prints the table of assertions; the exit code is 1
if any does not hold or a profile cannot be raised. Both versions of IP are tested, one after the other, unless --family
says which.`

// labTest is one invocation of lab test. all counts assertions, bad the failed ones. skipped counts profiles.
type labTest struct {
	labArgs
	table             *tabwriter.Writer
	all, bad, skipped int
}

func labTestCommand(p *program) *cobra.Command {
	a := labTest{labArgs: labArgs{program: p}}
	cmd := &cobra.Command{
		Use: "test [PROFILE...]", Short: "Let profiles prove that they are what they claim", Long: labTestLong,
		Example:           "  sudo cnibench lab test\n  sudo cnibench lab test --profiles calico-vxlan,macvlan --mtu 9000",
		ValidArgsFunction: argumentCompletion(profile.Names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := cmd.Flags().Set("profiles", strings.Join(args, ",")); err != nil {
					return err
				}
			}
			want, err := a.plan.buildPlan(cmd)
			if err != nil {
				return err
			}
			families := []int{4, 6}
			if cmd.Flags().Changed("family") {
				families = []int{want.Lab.Family}
			}
			return a.run(cmd.Context(), want, families)
		},
	}
	a.declareFlags(cmd, true)
	return cmd
}

const labUpLong = `Raise one profile, print its topology and what its rules and programs cost, and keep the lab until Ctrl-C or the end of
stdin. Meanwhile "cnibench lab exec" runs commands in its nodes and pods from another terminal, such as ip, nft and tcpdump.
Nothing is left afterwards.`

// labUp is one invocation of lab up.
type labUp struct {
	labArgs
	name string
}

func labUpCommand(p *program) *cobra.Command {
	a := labUp{labArgs: labArgs{program: p}}
	cmd := &cobra.Command{
		Use: "up PROFILE", Short: "Raise a profile and keep it until Ctrl-C", Long: labUpLong,
		Example:           "  sudo cnibench lab up calico-vxlan\n  sudo cnibench lab up canal --name second --mtu 9000",
		Args:              newArgumentCheck(1, 1, "one profile"),
		ValidArgsFunction: argumentCompletion(profile.Names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := a.plan.buildPlan(cmd)
			if err != nil {
				return err
			}
			v, err := plan.ParseVariant(args[0])
			if err != nil {
				return usageError(err)
			}
			want.Profiles = []plan.Variant{v}
			want, own := profilefile.Load(want, os.ReadFile)
			if own != nil {
				return own
			}
			if err := want.Validate(); err != nil {
				return err
			}
			if a.name == "" {
				a.name = want.Profiles[0].String()
			}
			return a.run(cmd.Context(), want)
		},
	}
	a.declareFlags(cmd, false)
	cmd.Flags().StringVar(&a.name, "name", "", "`name` by which lab exec finds it; the profile's if not given")
	groupFlags(cmd, groupOutput, true, "name", "verbose")
	groupFlags(cmd, plan.GroupLab, true, "cpu", "family", "mtu", "nodes", "pods-per-node", "services", "service-proxy", "policies")
	return cmd
}

const labExecLong = `Run a command in a node or pod of a lab: one of "cnibench lab up", or that of a run while it measures. The lab of a run is
called run-PID and its places PROFILE/PLACE; a command there disturbs the measurement. Output and exit code pass
through. Without arguments it prints the places. A place has a network of its own and the files of the host: "ip link"
lists its devices, /sys/class/net those of the host.`

func labExecCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "exec [PLACE -- COMMAND...]", Short: "Run a command in a node or pod of a lab that is up", Long: labExecLong,
		Example: "  sudo cnibench lab exec node-1 -- ip -d link\n  sudo cnibench lab exec --lab run-4711 calico-vxlan/switch \\\n    -- tcpdump -ni any -c 10",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return commandUsageError(cmd, fmt.Errorf("%s: which command?", args[0]))
			}
			return execInLab(cmd.OutOrStdout(), name, args)
		},
	}
	cmd.Flags().StringVar(&name, "lab", "", "`name` of the lab, if several are up")
	return cmd
}
