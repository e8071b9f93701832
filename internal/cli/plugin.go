package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Names of the program as a plugin of kubectl.
const (
	// pluginName is the file that kubectl runs, completionName the file that it runs to complete arguments.
	pluginName     = "kubectl-cnibench"
	completionName = "kubectl_complete-cnibench"
	// pluginWords is what the user types.
	pluginWords = "kubectl cnibench"
)

// parseProgramName sets p.plugin if argv[0] shows that kubectl called the program. It returns the arguments, which begin with
// cobra's command for completion if kubectl asks for a completion.
func (p *program) parseProgramName(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	switch strings.TrimSuffix(filepath.Base(argv[0]), ".exe") {
	case pluginName:
		p.plugin = true
	case completionName:
		p.plugin = true
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// invocations matches the calls of this program in an example.
var invocations = pattern.New(`(?m)(^\s*|[|&] )(?:sudo )?cnibench `)

// adaptToKubectl makes the help show the commands as kubectl calls them, and makes run measure on Kubernetes by default.
func adaptToKubectl(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginWords}
	var rename func(cmd *cobra.Command)
	rename = func(cmd *cobra.Command) {
		cmd.Example = invocations.ReplaceAllString(cmd.Example, "${1}"+pluginWords+" ")
		for _, sub := range cmd.Commands() {
			rename(sub)
		}
	}
	rename(root)
	if run, _, err := root.Find([]string{"run"}); err == nil {
		defaultToCluster(run)
	}
}

// defaultToCluster makes run measure on Kubernetes unless a flag says otherwise.
func defaultToCluster(run *cobra.Command) {
	env := run.Flags().Lookup("env")
	env.DefValue = plan.EnvKubernetes // what help shows
	work := run.RunE
	run.RunE = func(cmd *cobra.Command, args []string) error {
		if !env.Changed && !cmd.Flags().Changed("resume") {
			if err := cmd.Flags().Set(env.Name, plan.EnvKubernetes); err != nil {
				return usageError(err)
			}
		}
		return work(cmd, args)
	}
}
