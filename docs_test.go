package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// purposes are the folders of pages; each page has one purpose.
var purposes = []string{"tutorial", "how-to", "reference", "explanation", "results"}

// demoReport is what make demo leaves in the root, as long as its run. It is not a page.
const demoReport = "report.md"

// pages returns every Markdown file of the repository's root and of docs/, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", ".github/*.md", ".github/*/*.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name == demoReport {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(name)] = string(text)
		}
	}
	if len(found) < 20 {
		t.Fatalf("only %d pages", len(found))
	}
	return found
}

// prose returns the text of a page without code blocks, tables and comments.
func prose(page string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(page) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
		case code, strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "<!--"):
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	link   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	span   = regexp.MustCompile("`[^`\n]*`")
	titled = regexp.MustCompile(`^#{1,6} (.*)`)
)

// links returns the targets of a page's links, those in tables included and those in code left out.
func links(page string) []string {
	var found []string
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(line, "``"), -1) {
			found = append(found, m[1])
		}
	}
	return found
}

// anchors returns the anchors that GitHub makes of a page's headings.
func anchors(page string) []string {
	var found []string
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		m := titled.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if code || m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		n := 0
		for _, f := range found {
			if f == slug || strings.HasPrefix(f, slug+"-") && len(strings.Trim(f[len(slug):], "-0123456789")) == 0 {
				n++
			}
		}
		if n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		found = append(found, slug)
	}
	return found
}

// broken says what is wrong with a link of the page name, "" if nothing is. Links to other sites are not followed.
func broken(all map[string]string, name, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	to := name
	if file != "" {
		to = path.Join(path.Dir(name), file)
		if _, err := os.Stat(to); err != nil {
			return "no such file"
		}
	}
	if anchor == "" {
		return ""
	}
	page, ok := all[to]
	switch {
	case !ok:
		return "an anchor in a file that is not a page"
	case !slices.Contains(anchors(page), anchor):
		return "no such heading"
	}
	return ""
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	n := 0
	for name, page := range all {
		for _, target := range links(page) {
			n++
			if why := broken(all, name, target); why != "" {
				t.Errorf("%s: %s: %s", name, target, why)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links", n)
	}
	for _, bad := range []string{"no-such-file.md", "docs/README.md#no-such-heading", "#no-such-heading", "go.mod#module"} {
		if broken(all, "README.md", bad) == "" {
			t.Errorf("%s is found", bad)
		}
	}
}

// Every page of docs/ is one click from the index, and in the folder of its purpose.
func TestEveryPageIsInTheIndex(t *testing.T) {
	all := pages(t)
	index := links(all["docs/README.md"])
	for name := range all {
		folder, isPage := strings.CutPrefix(path.Dir(name), "docs")
		if !isPage || name == "docs/README.md" {
			continue
		}
		if !slices.Contains(purposes, strings.TrimPrefix(folder, "/")) {
			t.Errorf("%s is in none of docs/{%s}", name, strings.Join(purposes, ","))
		}
		if !slices.Contains(index, strings.TrimPrefix(name, "docs/")) {
			t.Errorf("docs/README.md does not link to %s: add a line for it", name)
		}
	}
}

// No page has the marks of a merge that was not finished.
func TestPagesAreMerged(t *testing.T) {
	for name, page := range pages(t) {
		if strings.Contains(page, "\n<<<<<<< ") || strings.Contains(page, "\n>>>>>>> ") {
			t.Errorf("%s has both versions of a merge", name)
		}
	}
}

// A page has at most 1,500 words. Tables and code do not count, pages that a program writes are as long as what they list,
// and a changelog only grows.
func TestPagesAreShort(t *testing.T) {
	for name, page := range pages(t) {
		written := strings.Contains(page, "<!-- generated by") || slices.Contains([]string{"docs/reference/check.md", "docs/reference/config.md", "CHANGELOG.md"}, name)
		if n := len(strings.Fields(prose(page))); n > 1500 && !written {
			t.Errorf("%s has %d words; split it by purpose", name, n)
		}
	}
}

// README is what a reader sees first: at most 120 lines with two pictures, and its two commands.
func TestReadmeIsShort(t *testing.T) {
	page := pages(t)["README.md"]
	if n := strings.Count(page, "\n"); n > 120 {
		t.Errorf("README.md has %d lines, want at most 120", n)
	}
	if n := strings.Count(page, "!["); n != 2 {
		t.Errorf("README.md has %d pictures, want two", n)
	}
	for _, question := range []string{"choose", "gate", "plugin of your own", "why", "grows", "repeat", "publish", "schedule", "contribute"} {
		row := regexp.MustCompile(`(?m)^\|.*\*\*` + question + `\*\*.*\| .*\]\(.*\|$`)
		if !row.MatchString(page) {
			t.Errorf("README.md does not lead to an answer to the question %q", question)
		}
	}
	for _, want := range []string{"\nmake demo ", "\nmake test "} {
		if !strings.Contains(page, want) {
			t.Errorf("README.md does not have the command %q", strings.TrimSpace(want))
		}
	}
}

// questions are what readers come with. Each is answered on a page within two clicks of README, under a heading, by a command
// or a link.
var questions = []struct{ question, page, heading, answer string }{
	{"choose", "docs/how-to/choose-a-cni.md", "2-measure-all-profiles-under-your-conditions", "cnibench run"},
	{"gate", "docs/how-to/gate-a-pull-request.md", "in-a-workflow", "uses: "},
	{"own plugin", "docs/how-to/test-your-own-dataplane.md", "3-test-it", "cnibench lab test"},
	{"why", "docs/how-to/explain-a-difference.md", "explain-two-profiles", "cnibench explain"},
	{"grow", "docs/how-to/find-the-growth.md", "find-the-growth-what-one-more-service-costs", "cnibench run"},
	{"repeat", "docs/how-to/repeat-an-article.md", "in-the-lab-in-five-minutes", "cnibench reproduce"},
	{"publish", "docs/how-to/publish.md", "3-make-the-page", "cnibench report"},
	{"schedule", "docs/how-to/schedule.md", "measure-a-cluster-on-a-schedule", "kubectl"},
	{"contribute", "docs/how-to/contribute-a-result.md", "a-result-of-your-own", "cnibench check"},
}

// clicks returns how many links lead from README to each page.
func clicks(all map[string]string) map[string]int {
	far := map[string]int{"README.md": 0}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, target := range links(all[next[0]]) {
			file, _, _ := strings.Cut(target, "#")
			to := path.Join(path.Dir(next[0]), file)
			if _, seen := far[to]; !seen && file != "" && all[to] != "" {
				far[to] = far[next[0]] + 1
				next = append(next, to)
			}
		}
	}
	return far
}

// answered returns the line of a heading whose section has the answer, 0 if there is none.
func answered(page, heading, answer string) int {
	at, code := 0, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case !code && titled.MatchString(line):
			at = 0
			if slices.Contains(anchors(line), heading) {
				at = i + 1
			}
		}
		if at > 0 && strings.Contains(line, answer) {
			return at
		}
	}
	return 0
}

// TestQuestionsAreAnswered follows the links from README.
func TestQuestionsAreAnswered(t *testing.T) {
	all := pages(t)
	far := clicks(all)
	for _, q := range questions {
		n, linked := far[q.page]
		line := answered(all[q.page], q.heading, q.answer)
		if !linked || n > 2 || line == 0 {
			t.Errorf("%s: %s#%s: linked %v, %d clicks, line %d: no %q there", q.question, q.page, q.heading, linked, n, line, q.answer)
			continue
		}
		t.Logf("%-10s %d clicks  %s:%d", q.question, n, q.page, line)
	}
	small := map[string]string{"README.md": "[a](a.md)", "a.md": "[b](b.md)", "b.md": "[c](c.md)", "c.md": "# C\n## D\ncnibench run\n", "alone.md": "x"}
	if far := clicks(small); far["c.md"] != 3 || far["alone.md"] != 0 {
		t.Errorf("clicks %v", far)
	}
	if answered(small["c.md"], "c", "cnibench run") != 0 || answered(small["c.md"], "d", "cnibench run") != 2 {
		t.Error("an answer counts for the heading above its own")
	}
}
