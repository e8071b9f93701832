package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/plan"
)

// object is the part of a Kubernetes object that says what is run on it.
type object struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template    podTemplate
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
}

type podTemplate struct {
	Spec struct {
		Containers []struct{ Args []string }
	}
}

// The command lines in deploy/cronjob.yaml are ones that this version takes, and so is the plan.
func TestDeployedCommands(t *testing.T) {
	b, err := os.ReadFile("../../deploy/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var o object
		if err := d.Decode(&o); err != nil {
			break // the end; TestGenerated of package deploy holds the syntax
		}
		for _, c := range o.Spec.JobTemplate.Spec.Template.Spec.Containers {
			ran++
			root := (&program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).rootCommand(nil)
			cmd, rest, err := root.Find(c.Args)
			if err != nil || cmd == root {
				t.Errorf("%q: %v", c.Args, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", c.Args, err)
			} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%q: %v", c.Args, err)
			}
		}
		if text := o.Data["plan.yaml"]; text != "" {
			ran++
			p, err := plan.Parse("plan.yaml", strings.NewReader(text))
			if err == nil {
				p.Environment = plan.EnvKubernetes
				err = p.Settle().Validate()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	if ran != 2 {
		t.Errorf("%d commands and plans, want the run and its plan", ran)
	}
}
