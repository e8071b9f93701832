package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// action is a composite action.
type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct{ Steps []step }
}

// step is a step of an action.
type step struct {
	Name, ID, If, Uses, Shell, Run string
	Env, With                      map[string]string
}

// job is one use of an action, as a runner of GitHub would have it.
type job struct {
	// root is the directory of the action, dir that of the job, bin has programs that come before others, temp is RUNNER_TEMP.
	root, dir, bin, temp string
	// inputs and github are contexts of expressions by name, such as event_name.
	inputs, github map[string]string
	env            []string
	log            io.Writer
}

// outcome is how a job ended.
type outcome struct {
	failed  bool
	outputs map[string]string
	// summary is the summary of the job, ran are the names of the steps that ran.
	summary string
	ran     []string
}

// runs takes each step of an action in turn, as a runner does.
func (j *job) runs(ctx context.Context) (outcome, error) {
	o := outcome{outputs: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(j.root, "action.yml"))
	if err != nil {
		return o, err
	}
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		return o, err
	}
	vars := map[string]string{"github.action_path": j.root, "github.token": "token"}
	for name, in := range a.Inputs {
		vars["inputs."+name] = in.Default
	}
	for name := range j.inputs {
		if _, known := a.Inputs[name]; !known {
			return o, fmt.Errorf("the action has no input %q", name)
		}
	}
	for name, v := range j.github {
		vars["github."+name] = v
	}
	maps.Copy(vars, prefixed("inputs.", j.inputs))
	for name, v := range vars { // a default may be an expression
		vars[name] = fill(v, vars)
	}
	summary := filepath.Join(j.temp, "summary")
	for i, s := range a.Runs.Steps {
		if !wanted(s.If, vars, o.failed) {
			continue
		}
		o.ran = append(o.ran, s.Name)
		if s.Uses != "" { // what others wrote is not run
			fmt.Fprintf(j.log, "step %s: uses %s with %v\n", s.Name, s.Uses, s.With)
			continue
		}
		outputs := filepath.Join(j.temp, fmt.Sprintf("output-%d", i))
		env := append(j.environment(), "GITHUB_OUTPUT="+outputs, "GITHUB_STEP_SUMMARY="+summary)
		for name, v := range s.Env {
			env = append(env, name+"="+fill(v, vars))
		}
		if err := j.bash(ctx, fill(s.Run, vars), env); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				return o, err
			}
			o.failed = true
		}
		maps.Copy(vars, prefixed("steps."+s.ID+".outputs.", lines(outputs)))
	}
	for name, out := range a.Outputs {
		o.outputs[name] = fill(out.Value, vars)
	}
	if b, err := os.ReadFile(summary); err == nil {
		o.summary = string(b)
	}
	return o, nil
}

func (j *job) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "PATH=") || strings.HasPrefix(s, "GITHUB_") || strings.HasPrefix(s, "GH_")
	})
	return append(append(env, "PATH="+j.bin+":"+os.Getenv("PATH"), "RUNNER_TEMP="+j.temp, "GITHUB_REPOSITORY=example/cni"), j.env...)
}

// bash runs a script with the options that a runner gives.
func (j *job) bash(ctx context.Context, script string, env []string) error {
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = j.dir, env, j.log, j.log
	return cmd.Run()
}

func prefixed(prefix string, m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[prefix+k] = v
	}
	return out
}

// lines reads name=value lines of a file, which may be absent.
func lines(file string) map[string]string {
	out := map[string]string{}
	text, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	for line := range bytes.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "="); ok {
			out[name] = value
		}
	}
	return out
}

var expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// fill replaces the expressions of a text.
func fill(text string, vars map[string]string) string {
	return expression.ReplaceAllStringFunc(text, func(s string) string { return evaluate(s[3:len(s)-2], vars) })
}

// wanted says whether a step runs: without always() only while none has failed.
func wanted(condition string, vars map[string]string, failed bool) bool {
	if failed && !strings.Contains(condition, "always()") {
		return false
	}
	return condition == "" || evaluate(condition, vars) != ""
}

// evaluate returns an expression of ||, &&, ==, !=, names, texts and numbers. False is "".
func evaluate(e string, vars map[string]string) string {
	if x, y, ok := strings.Cut(e, "||"); ok {
		if v := evaluate(x, vars); v != "" {
			return v
		}
		return evaluate(y, vars)
	}
	if x, y, ok := strings.Cut(e, "&&"); ok {
		if evaluate(x, vars) == "" {
			return ""
		}
		return evaluate(y, vars)
	}
	for _, op := range []string{"==", "!="} {
		if x, y, ok := strings.Cut(e, op); ok {
			if (evaluate(x, vars) == evaluate(y, vars)) == (op == "==") {
				return "true"
			}
			return ""
		}
	}
	e = strings.TrimSpace(e)
	switch {
	case e == "always()":
		return "true"
	case strings.HasPrefix(e, "'"), e == strings.Trim(e, "abcdefghijklmnopqrstuvwxyz"):
		return strings.Trim(e, "'")
	}
	return vars[e]
}
