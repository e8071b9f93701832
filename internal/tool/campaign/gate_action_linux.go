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

// gh is the program gh as far as the action uses it: releases are in $RELEASES, comments in $COMMENTS.
const gh = `#!/bin/bash
[ -n "${GH_TOKEN:-}" ] || { echo "gh: To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable." >&2; exit 4; }
case "$1 $2" in
"release download")
	shift 2
	[ "$1" = --repo ] && tag=latest || tag=$1
	[ -d "$RELEASES/$tag" ] || { echo "release not found" >&2; exit 1; }
	while [ "$1" != --dir ]; do shift; done
	cp "$RELEASES/$tag"/* "$2/" ;;
"pr comment")
	[ -z "${READ_ONLY:-}" ] || { echo "GraphQL: Resource not accessible by integration (addComment)" >&2; exit 1; }
	[ -e "$COMMENTS" ] || [[ " $* " == *" --create-if-none "* ]] || { echo "no comments found for current user" >&2; exit 1; }
	while [ "$1" != --body-file ]; do shift; done
	cp "$2" "$COMMENTS" ;;
*) echo "gh: unknown command $*" >&2; exit 1 ;;
esac
`

// sudo is what the action needs of sudo where root is not asked for.
const sudo = "#!/bin/sh\nexec env \"$@\"\n"

// newJob returns a job in directories of its own under dir. Without sudo on the machine it has one that changes nothing.
func newJob(root, dir string) (*job, error) {
	j := &job{root: root, dir: filepath.Join(dir, "job"), bin: filepath.Join(dir, "bin"), temp: filepath.Join(dir, "temp"), log: os.Stderr,
		github: map[string]string{"event_name": "pull_request", "event.pull_request.number": "7"}}
	j.env = []string{"RELEASES=" + filepath.Join(dir, "releases"), "COMMENTS=" + j.comments()}
	for _, d := range []string{j.dir, j.bin, j.temp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	programs := map[string]string{"gh": gh}
	if _, err := exec.LookPath("sudo"); err != nil || os.Geteuid() != 0 {
		programs["sudo"] = sudo
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(j.bin, name), []byte(text), 0o755); err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return j, nil
}

// comments is the file with the comment on the pull request.
func (j *job) comments() string { return filepath.Join(filepath.Dir(j.temp), "comment") }

// comment is the comment on the pull request, "" without one.
func (j *job) comment() string {
	b, err := os.ReadFile(j.comments())
	if err != nil {
		return ""
	}
	return string(b)
}
