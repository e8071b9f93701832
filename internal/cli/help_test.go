package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestHelpIsGrouped: the first page of run's help fits on a screen; --all lists every flag in its group.
func TestHelpIsGrouped(t *testing.T) {
	help := func(args ...string) string {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &out}
		if code := p.main(append(args, "--help")); code != exitFine {
			t.Fatalf("%v: code %d: %s", args, code, out.String())
		}
		return out.String()
	}
	first, all := help("run"), help("run", "--all")
	if n := strings.Count(first, "\n"); n > 50 {
		t.Errorf("the first page has %d lines", n)
	}
	for _, g := range groups {
		if !strings.Contains(all, "\n"+string(g)+":\n") {
			t.Errorf("no group %q", g)
		}
	}
	if strings.Contains(first, "--line-rate") || !strings.Contains(first, "--help --all") {
		t.Error("conditions are on the first page")
	}
	p := &program{}
	run := p.runCommand()
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(all, "--"+f.Name+" ") {
			t.Errorf("--%s is not in the help of run", f.Name)
		}
	})
}

// TestNearestWords: a slip in a command or flag names what is near, and the exit code is that of bad usage.
func TestNearestWords(t *testing.T) {
	for line, want := range map[string]string{
		"rrun":                            `unknown command "rrun", did you mean "run"?`,
		"list profils":                    `unknown command "profils", did you mean "profiles"?`,
		"cni":                             "a subcommand is required",
		"run --profils x":                 "unknown flag: --profils, did you mean --profiles?",
		"run --dry-run --profiles calcio": `unknown profile "calcio"`,
		"explain -f html":                 `-f is the plan file of cnibench explain, and there is no file "html": for the format give --format html`,
		"run --file json":                 `for the format give --format json`,
		"run --dry-run -f .":              "is a directory",
		"run --dry-run --cpu=spilt":       `--cpu: "spilt" is not one of auto, one, split, did you mean "split"?`,
	} {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &out}
		if code := p.main(strings.Fields(line)); code != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, %s", line, code, out.String())
		}
	}
}
