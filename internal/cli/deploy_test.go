package cli

import (
	"bytes"
	"os"
	"regexp"
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
			root := (&program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).root(nil)
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

// fence is a code block of a document; comment is what a shell would not read, or would read as another command.
var (
	fence   = regexp.MustCompile("(?s)\n```\n(.*?)\n```")
	another = regexp.MustCompile(` +#.*| [|>].*| &&.*`)
)

// Every command in the documents about clusters and monitoring is one that this version takes.
func TestDocumentedCommands(t *testing.T) {
	for _, name := range []string{"kubernetes.md", "monitoring.md"} {
		b, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, block := range fence.FindAllStringSubmatch(strings.ReplaceAll(string(b), "\\\n", ""), -1) {
			for line := range strings.SplitSeq(block[1], "\n") {
				words := strings.Fields(another.ReplaceAllString(strings.TrimPrefix(line, "kubectl "), ""))
				if len(words) < 2 || words[0] != "cnibench" {
					continue
				}
				n++
				cmd, rest, err := (&program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).root(nil).Find(words[1:])
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s has no command", name)
		}
	}
}
