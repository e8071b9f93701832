package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/plan"
)

// chartsFlag says where a run that installs something takes it from.
const chartsFlag = "charts"

// elsewhere returns faults for the flags of an environment that is not measured: those of clusters where the lab is, whose
// numbers would be taken for a cluster's, and those of the lab where a cluster is, which gets no delay and no Services by them.
// A plan file may well say something for both.
func (a *planArgs) elsewhere(cmd *cobra.Command, p plan.Plan) plan.Faults {
	var names []string
	why := "is for a cluster, and this plan measures the lab: add --env kubernetes"
	switch {
	case p.Environment == "" || p.Environment == plan.EnvLab:
		names = []string{"kubeconfig", chartsFlag}
		for _, f := range planFlags {
			if f.Where == plan.OnClusters {
				names = append(names, f.Flag)
			}
		}
	case p.OnCluster() && !a.labToo:
		why = "is for the lab, and this plan measures a cluster, which is measured as it stands: leave it out, or add --env lab"
		for _, f := range planFlags {
			if f.Where == plan.InLab {
				names = append(names, f.Flag)
			}
		}
	}
	var faults plan.Faults
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			faults = append(faults, plan.Fault{Field: "--" + name, Message: why})
		}
	}
	for _, name := range []string{"kubeconfig", "context"} {
		if cmd.Flags().Changed(name) && p.Environment == plan.EnvKind {
			faults = append(faults, plan.Fault{Field: "--" + name, Message: "is for a cluster that is there, and --env kind makes its own: " +
				"leave it out, or take --env kubernetes"})
		}
	}
	if cmd.Flags().Changed(chartsFlag) && p.Environment == plan.EnvKubernetes && !p.Cluster.Install {
		faults = append(faults, plan.Fault{Field: "--" + chartsFlag, Message: "says where what is installed comes from, and this plan " +
			"installs nothing: add --install, or leave it out"})
	}
	return faults
}
