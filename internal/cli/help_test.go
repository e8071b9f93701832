package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// TestHelpIsGrouped: --all lists every flag of run in its group; the first page has no conditions.
func TestHelpIsGrouped(t *testing.T) {
	first, all := helpOf(t, "run"), helpOf(t, "run", "--all")
	for _, g := range groups {
		if !strings.Contains(all, "\n"+string(g)+":\n") {
			t.Errorf("no group %q", g)
		}
	}
	if strings.Contains(first, "--line-rate") || !strings.Contains(first, "--help --all") {
		t.Error("conditions are on the first page")
	}
	p := &program{}
	run := runCommand(p)
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(all, "--"+f.Name+" ") && !strings.Contains(all, "--"+f.Name+"\n") {
			t.Errorf("--%s is not in the help of run", f.Name)
		}
	})
}

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := &program{stdout: &out, stderr: &out}
	if code := p.main(append(args, "--help")); code != exitFine {
		t.Fatalf("%v: code %d: %s", args, code, out.String())
	}
	return out.String()
}

// TestHelpFits: help of each command is one screen of 80 columns, names every command in a group, and says where there is
// more.
func TestHelpFits(t *testing.T) {
	root := helpOf(t)
	seen := 0
	var visit func(c *cobra.Command, words []string)
	visit = func(c *cobra.Command, words []string) {
		if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
			return
		}
		page := helpOf(t, words...)
		seen++
		if n := rowCount(page); n > helpHeight {
			t.Errorf("%s: %d rows:\n%s", c.CommandPath(), n, page)
		}
		for line := range strings.Lines(page) {
			if w := number.Width(strings.TrimSuffix(line, "\n")); w > helpWidth {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), w, line)
			}
		}
		if len(words) == 1 && !strings.Contains(root, "\n  "+c.Name()+" ") {
			t.Errorf("%s is in no group", c.Name())
		}
		full := helpOf(t, append(words, "--all")...)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !strings.Contains(full, "--"+f.Name) {
				t.Errorf("%s --all has no --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub, append(slices.Clone(words), sub.Name()))
		}
	}
	visit((&program{stdout: io.Discard, stderr: io.Discard}).rootCommand(nil), nil)
	if seen < 25 {
		t.Errorf("%d commands", seen)
	}
}

// TestShortened: help in a line ends where a part of the sentence does.
func TestShortened(t *testing.T) {
	for text, want := range map[string]string{
		"short":                                "short",
		"result file; replaced if it is there": "result file",
		"names of paths (cnibench list paths, and all of them)": "names of paths",
		"averyveryverylongwordwithoutanyend":                    "averyveryverylongwo…",
	} {
		if got := shortenHelp(text, 20); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestOneLetterOneMeaning: -f is the format wherever it is; a plan file that it names is taken as one, as before.
func TestOneLetterOneMeaning(t *testing.T) {
	letters := map[string]string{}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Shorthand == "" || f.Name == "help" {
				return
			}
			if name := letters[f.Shorthand]; name != "" && name != f.Name {
				t.Errorf("%s: -%s is --%s, elsewhere --%s", c.CommandPath(), f.Shorthand, f.Name, name)
			}
			letters[f.Shorthand] = f.Name
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit((&program{stdout: io.Discard, stderr: io.Discard}).rootCommand(nil))
	if letters["f"] != "format" {
		t.Errorf("-f is %q", letters["f"])
	}
	file := "../../examples/demo.yaml"
	for _, flags := range [][]string{{"--file", file}, {"-f", file}, {"-f", file, "-f", "json"}} {
		cmd := runCommand(&program{stdout: io.Discard, stderr: io.Discard})
		if err := cmd.ParseFlags(flags); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Lookup("file").Value.String(); got != file {
			t.Errorf("%v: the plan file is %q", flags, got)
		}
		want := map[bool]string{true: "json", false: "text"}[len(flags) == 4]
		if got := cmd.Flags().Lookup("format").Value.String(); got != want {
			t.Errorf("%v: the format is %q", flags, got)
		}
	}
}

// TestNearestWords: a slip in a command or flag names what is near, and the exit code is that of bad usage.
func TestNearestWords(t *testing.T) {
	for line, want := range map[string]string{
		"rrun":                            `unknown command "rrun", did you mean "run"?`,
		"list profils":                    `unknown command "profils", did you mean "profiles"?`,
		"cni":                             "a subcommand is required",
		"run --profils x":                 "unknown flag: --profils, did you mean --profiles?",
		"run --dry-run --profiles calcio": `unknown profile "calcio"`,
		"explain -f htm":                  `unknown format "htm", did you mean "html": want text`,
		"explain --profiles a canal ptp":  "leave out --profiles",
		"run --dry-run -f none.yaml":      "none.yaml: no such file",
		"run --dry-run --file .":          "is a directory",
		"run --dry-run --cpu=spilt":       `--cpu: "spilt" is not one of auto, one, split, did you mean "split"?`,
	} {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &out}
		if code := p.main(strings.Fields(line)); code != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, %s", line, code, out.String())
		}
	}
}
