package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// readersFiles are result files that a reader of help has made.
var readersFiles = []string{DefaultResult, "old.jsonl", "new.jsonl", "before.jsonl", "after.jsonl", "fidelity.jsonl", "rke2.jsonl", "iperf3-*.json", "values.yaml", "results/*.jsonl"}

// TestExamplesRun: each command has a summary and two examples, whose flags and arguments are accepted and whose files
// exist.
func TestExamplesRun(t *testing.T) {
	p := &program{stdout: io.Discard, stderr: io.Discard}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
			return
		}
		lines := strings.Split(strings.NewReplacer("\\\n    ", "", "|\n    ", "| ").Replace(c.Example), "\n")
		if c.Short == "" || len(lines) != 2 {
			t.Errorf("%s: summary %q, %d examples, want 2", c.CommandPath(), c.Short, len(lines))
		}
		for _, line := range lines {
			own := false
			for _, call := range callsIn(t, line) {
				own = checkCall(t, c, call) || own
			}
			if !own {
				t.Errorf("%s: the example %q is of another command", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(p.rootCommand(nil))
}

// TestExampleFaults: the check of examples finds what does not run.
func TestExampleFaults(t *testing.T) {
	for _, line := range []string{
		"cnibench run --workload rr", "cnibench run --workloads rrr", "cnibench run --profiles calcio", "cnibench run -f examples/none.yaml",
		"cnibench report none.jsonl", "cnibench report -f pdf", "cnibench import --path pod-to-pod x", "cnibench compare old.jsonl", "cnibench lab up calcio",
		"cnibench cni show calcio", "cnibench lists", "cnibench list profile", "cnibench explain canal calcio", "cnibench explain none.jsonl canal ptp", "cnibench list schema plans",
	} {
		if faults := callFaults(callsIn(t, "  "+line)[0]); len(faults) == 0 {
			t.Errorf("%s: no fault", line)
		}
	}
}

// callsIn returns the arguments of each call of this program in a line of shell.
func callsIn(t *testing.T, line string) [][]string {
	t.Helper()
	if !strings.HasPrefix(line, "  ") {
		t.Errorf("%q is not indented by two spaces", line)
	}
	var calls [][]string
	for _, words := range commandsIn(line) {
		if words[0] == "sudo" {
			words = words[1:]
		}
		if words[0] == "cnibench" {
			calls = append(calls, words[1:])
		}
	}
	return calls
}

// commandsIn splits a line at pipes and spaces outside quotes, and leaves out what follows >.
func commandsIn(line string) [][]string {
	commands, word, quote := [][]string{nil}, "", rune(0)
	end := func() {
		if last := len(commands) - 1; word != "" {
			commands[last], word = append(commands[last], word), ""
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote = r
		case r == ' ':
			end()
		case r == '|':
			end()
			commands = append(commands, nil)
		default:
			word += string(r)
		}
	}
	end()
	for i, words := range commands {
		if at := slices.Index(words, ">"); at >= 0 {
			commands[i] = words[:at]
		}
	}
	return commands
}

// checkCall reports whether the call is of c or of a command below it.
func checkCall(t *testing.T, c *cobra.Command, args []string) bool {
	t.Helper()
	for _, fault := range callFaults(args) {
		t.Errorf("%s: example cnibench %s: %s", c.CommandPath(), strings.Join(args, " "), fault)
	}
	found, _, err := (&program{stdout: io.Discard, stderr: io.Discard}).rootCommand(nil).Find(args)
	return err == nil && strings.HasPrefix(found.CommandPath()+" ", c.CommandPath()+" ")
}

// callFaults parses a call as main does and returns what is wrong with it.
func callFaults(args []string) (faults []string) {
	root := (&program{stdout: io.Discard, stderr: io.Discard}).rootCommand(nil)
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateRequiredFlags()
	}
	if err == nil {
		err = cmd.ValidateFlagGroups()
	}
	if err != nil {
		return []string{err.Error()}
	}
	operands := expand(cmd.Flags().Args())
	if err := cmd.ValidateArgs(operands); err != nil {
		faults = append(faults, err.Error())
	}
	if cmd.ValidArgs != nil {
		for _, word := range operands {
			if !slices.Contains(cmd.ValidArgs, word) {
				faults = append(faults, word+" is not an argument")
			}
		}
	}
	switch {
	case cmd.Name() == "explain":
		files := len(operands) - 2
		if cmd.Flags().Changed("what-if") {
			files++
		}
		for _, name := range operands[:files] {
			faults = append(faults, fileFaults(name)...)
		}
		faults = append(faults, profileFaults(strings.Join(operands[files:], ","))...)
	case strings.Contains(cmd.UseLine(), " PROFILE"), strings.Contains(cmd.UseLine(), "[PROFILE]"):
		if len(operands) > 0 {
			faults = append(faults, profileFaults(operands[0])...)
		}
	case strings.Contains(cmd.UseLine(), "FILE") || strings.Contains(cmd.UseLine(), "RESULT") || cmd.Name() == "compare":
		for _, name := range operands {
			faults = append(faults, fileFaults(name)...)
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { faults = append(faults, flagFaults(cmd, f)...) })
	return faults
}

func expand(words []string) (all []string) {
	for _, word := range words {
		if strings.Contains(word, "*") && slices.Contains(readersFiles, word) {
			all = append(all, word, word) // a reader has two or more
			continue
		}
		if names, _ := filepath.Glob(filepath.Join("../..", word)); strings.Contains(word, "*") && names != nil {
			for _, name := range names {
				all = append(all, strings.TrimPrefix(name, "../../"))
			}
			continue
		}
		all = append(all, word)
	}
	return all
}

func fileFaults(name string) []string {
	if name == "-" || slices.Contains(readersFiles, name) {
		return nil
	}
	_, err := os.Stat(filepath.Join("../..", name))
	if err != nil && strings.HasPrefix(name, "./") { // a profile file that a page lets its reader write
		_, err = os.Stat(filepath.Join("../../examples/profiles", name))
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

func profileFaults(names string) (faults []string) {
	var p plan.Plan
	s, _ := plan.SettingOf("profiles")
	err := s.Set(&p, names)
	if err != nil {
		return []string{err.Error()}
	}
	for _, v := range p.Profiles {
		if strings.HasSuffix(v.Profile(), ".yaml") {
			faults = append(faults, fileFaults(v.Profile())...)
		} else if _, known := profile.Lookup(v.Profile()); !known {
			faults = append(faults, "unknown profile "+v.Profile())
		}
	}
	return faults
}

func flagFaults(cmd *cobra.Command, f *pflag.Flag) []string {
	value := f.Value.String()
	switch f.Name {
	case "file":
		return fileFaults(value)
	case "profile", "profiles", "baseline":
		return profileFaults(value)
	case "path":
		if _, err := plan.ParsePath(value); err != nil {
			return []string{err.Error()}
		}
	case "format":
		return formatFaults(cmd, value)
	}
	s, is := plan.SettingOf(f.Name)
	if !is || cmd.Name() != "run" && s.Group() == plan.GroupCluster {
		return nil
	}
	p := plan.Default()
	if err := s.Set(&p, value); err != nil {
		return []string{err.Error()}
	}
	if fault := s.Check(p); fault != "" {
		return []string{fault}
	}
	return nil
}

// formatFaults asks the completion of the flag, which offers every format of the command.
func formatFaults(cmd *cobra.Command, value string) []string {
	completion, is := cmd.GetFlagCompletionFunc("format")
	if !is {
		return []string{"--format has no completion"}
	}
	words, _ := completion(cmd, nil, value)
	if !slices.Contains(words, value) {
		return []string{"unknown format " + value}
	}
	return nil
}
