package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	remark = regexp.MustCompile(`(^|\s)#( .*|)$`)
	target = regexp.MustCompile(`(?m)^([a-z-]+):`)
	// inTree is a path of the repository.
	inTree = regexp.MustCompile(`^(\./)?(examples|deploy|contrib|scripts|internal|docs|e2e)/`)
)

// documents returns the lines of shell in the code blocks of each page.
func documents(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	for _, pattern := range []string{"*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			page := strings.TrimPrefix(filepath.ToSlash(name), "../../")
			lines[page] = shellOf(strings.ReplaceAll(string(text), "\\\n", " "))
		}
	}
	return lines
}

// shellOf returns the lines of a page's code blocks that have no language, or sh: commands, or what they print.
func shellOf(page string) (lines []string) {
	inside, shell := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		language, is := strings.CutPrefix(line, "```")
		switch {
		case is:
			inside, shell = !inside, language == "" || language == "sh"
		case inside && shell:
			lines = append(lines, strings.TrimSpace(remark.ReplaceAllString(line, "")))
		}
	}
	return lines
}

// simple returns the words of each command in a line, without what only says how it is called.
func simple(line string) (calls [][]string) {
	for part := range strings.SplitSeq(strings.ReplaceAll(line, " 2>&1", ""), " && ") {
		for _, words := range commandsIn(strings.TrimPrefix(part, "$ ")) {
			for len(words) > 0 && (words[0] == "sudo" || words[0] == "kubectl" && len(words) > 1 && words[1] == "cnibench" || strings.Contains(words[0], "=") && len(words) > 1) {
				words = words[1:]
			}
			if len(words) > 0 {
				words[0] = strings.TrimPrefix(words[0], "bin/")
				calls = append(calls, words)
			}
		}
	}
	return calls
}

// documentFaults returns what is wrong with a command of a page: a flag or an argument that this version refuses, a target
// that make does not know, a file that the repository does not have.
func documentFaults(words, targets []string) (faults []string) {
	for _, word := range words {
		if at, _, _ := strings.Cut(word, "*"); inTree.MatchString(word) {
			if _, err := os.Stat(filepath.Join("../..", filepath.Dir(at+"x"))); err != nil {
				faults = append(faults, err.Error())
			}
		}
	}
	switch words[0] {
	case "cnibench":
		faults = append(faults, callFaults(words[1:])...)
	case "make":
		for _, word := range words[1:] {
			if !strings.Contains(strings.Join(targets, " ")+" ", word+" ") {
				faults = append(faults, "make has no target "+word)
			}
		}
	}
	return faults
}

func makeTargets(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range target.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// atReadersPlace goes to a directory that has what the repository has, and what a page lets its reader write: profile files
// and their plugins.
func atReadersPlace(t *testing.T) {
	t.Helper()
	place := t.TempDir()
	for _, pattern := range []string{"../../*", "../../examples/profiles/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			from, err := filepath.Abs(name)
			if i, e := os.Stat(name); e != nil || name == "../../bin" || !i.IsDir() && filepath.Ext(name) != ".yaml" {
				continue // what a build makes
			}
			if err = errors.Join(err, os.Symlink(from, filepath.Join(place, filepath.Base(name)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(place, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{"bridge", "extra-hop", "host-local", "aws-cni", "egress-cni", "cilium-cni"} {
		if err := os.WriteFile(filepath.Join(place, "bin", plugin), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(place)
}

// TestDocumentsHold: every command in the documents is one that this version takes.
func TestDocumentsHold(t *testing.T) {
	targets, n := makeTargets(t), 0
	for page, lines := range documents(t) {
		for _, line := range lines {
			for _, words := range simple(line) {
				if words[0] == "cnibench" {
					n++
				}
				for _, fault := range documentFaults(words, targets) {
					t.Errorf("%s: %s: %s", page, line, fault)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("the documents have %d commands", n)
	}
	for _, bad := range []string{"cnibench runs", "sudo bin/cnibench run --workload rr", "make dmo", "kubectl apply -f deploy/none/x.yaml", "make build && cnibench report -f pdf"} {
		faults := 0
		for _, words := range simple(bad) {
			faults += len(documentFaults(words, targets))
		}
		if faults == 0 {
			t.Errorf("%s: no fault", bad)
		}
	}
}

// executed are the commands that a page's reader can try on any machine, with the exit codes that they may end with.
var executed = map[string][]int{
	"run": {exitFine}, "report": {exitFine}, "compare": {exitFine, exitWorse, exitInconclusive}, "check": {exitFine, exitWorse}, "reproduce": {exitFine},
	"list": {exitFine}, "version": {exitFine}, "completion": {exitFine},
}

// TestDocumentsRun runs the commands of the documents, with the files that a reader has made by then. A run is planned, and
// not carried out (--dry-run); the others do all of their work.
func TestDocumentsRun(t *testing.T) {
	lines := documents(t)
	atReadersPlace(t)
	t.Setenv("KUBECONFIG", "none")
	t.Setenv("EXCHANGES", "many")
	if err := os.WriteFile("values.yaml", []byte("routingMode: native\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	made := "run --profiles raw,host,canal --baseline raw --paths pod-to-pod/cross-node,pod-to-service/remote --workloads rr,crr,stream --repetitions 4 --duration 10ms --format none -q -o "
	if err := os.Mkdir("results", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range append([]string{"results/1.jsonl", "results/2.jsonl"}, readersFiles...) {
		if strings.HasSuffix(file, ".jsonl") && !strings.Contains(file, "*") {
			if code, said := tryOut(strings.Fields(made + file)); code != exitFine {
				t.Fatalf("%s: %d: %s", file, code, said)
			}
		}
	}
	n := 0
	for page, list := range lines {
		for _, line := range list {
			for _, words := range simple(line) {
				// A chart comes over the network, - is what another command writes, and stacks are those of a real path.
				if len(words) < 2 || words[0] != "cnibench" || executed[words[1]] == nil || slices.ContainsFunc(words, func(w string) bool {
					return slices.Contains([]string{"--resume", "--chart", "-", "pprof", "folded"}, w)
				}) {
					continue
				}
				args := globbed(words[1:])
				if args[0] == "run" || args[0] == "reproduce" && !slices.Contains(args, "--result") {
					args = append(args, "--dry-run")
				}
				n++
				if code, said := tryOut(args); !slices.Contains(executed[args[0]], code) {
					t.Errorf("%s: cnibench %s: exit code %d: %s", page, strings.Join(args, " "), code, said)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d commands ran", n)
	}
}

// tryOut runs one command line over scripted agents and returns its exit code and what it said.
func tryOut(args []string) (int, string) {
	var said strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &said, openLab: raisePretence}
	return p.main(args), said.String()
}

// globbed puts the names of files in place of a pattern, as a shell does. A star alone stands in quotes.
func globbed(words []string) (all []string) {
	for _, word := range words {
		if names, err := filepath.Glob(word); strings.Contains(word, "*") && word != "*" && err == nil && names != nil {
			all = append(all, names...)
			continue
		}
		all = append(all, word)
	}
	return all
}
