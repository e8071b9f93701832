package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestReproducePublished judges each article against its own numbers: every ratio is the article's, of one run.
func TestReproducePublished(t *testing.T) {
	for _, s := range findings.Published().Sources {
		file := "../../examples/published/" + s.Plan + ".csv"
		var out, errs bytes.Buffer
		p := &program{stdout: &out, stderr: &errs}
		if code := p.main([]string{"reproduce", "--result", file, s.ID}); code != exitFine {
			t.Fatalf("%s: exit %d: %s", s.ID, code, errs.String())
		}
		if lines := strings.Count(out.String(), "\n"); lines > 60 || !strings.Contains(out.String(), "reproduce --all --result "+file) {
			t.Errorf("%s: %d lines, more than a screen:\n%s", s.ID, lines, out.String())
		}
		out.Reset()
		if code := p.main([]string{"reproduce", "--all", "--result", file, s.ID}); code != exitFine {
			t.Fatalf("%s: exit %d: %s", s.ID, code, errs.String())
		}
		for _, want := range []string{s.Title, "Not as in the article", "Figures", "Claims", "What check finds in both"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: nothing about %q", s.ID, want)
			}
		}
	}
}

// TestArticlePlans: a first look has the article's cases within five minutes, an exact run its windows.
func TestArticlePlans(t *testing.T) {
	for _, s := range findings.Published().Sources {
		exact, _, err := (&articlePlan{name: s.Plan, exact: true}).startingPlan("")
		if err != nil {
			t.Fatal(err)
		}
		if !exact.Sequential || exact.Twin || exact.Budget != 0 || exact.Duration == 0 || exact.Name != s.Plan {
			t.Errorf("%s is not as it was run: %+v", s.ID, exact)
		}
		at, order := map[plan.Variant]int{}, exact.Order(1)
		for i, c := range order {
			if last, seen := at[c.Profile]; seen && last != i-1 {
				t.Errorf("%s: %s comes again at %d of %d", s.ID, c.Profile, i, len(order))
			}
			at[c.Profile] = i
		}
		look := &articlePlan{name: s.Plan, own: true}
		p, _, err := look.startingPlan("")
		if err != nil {
			t.Fatal(err)
		}
		notes, err := look.completePlan(&p, nil)
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "--own") {
			t.Errorf("%s: %q, %v", s.ID, notes, err)
		}
		fit := p.FitRepetitions().Fit(len(p.Cases()))
		if err := fit.Validate(); err != nil || fit.Expected(len(fit.Cases())) > firstLook {
			t.Errorf("%s: %s, %v", s.ID, fit.Expected(len(fit.Cases())), err)
		}
		if !slices.Equal(p.Profiles, exact.Profiles) || !slices.Equal(p.Paths, exact.Paths) {
			t.Errorf("%s: a first look measures other cells", s.ID)
		}
		if slices.ContainsFunc(p.Workloads, func(w plan.Workload) bool { return w.Tool != "" || w.Window > 2*w.Traits().Interval }) {
			t.Errorf("%s: %v", s.ID, p.Workloads)
		}
	}
}

// TestReproduceFaults: wrong input ends with exit code 2, and nothing is measured.
func TestReproduceFaults(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"reproduce", "rke3"}, `there is no article "rke3", did you mean "rke2"?`},
		{[]string{"reproduce", "rke2", "--fail-on", "sameness"}, "want contradicted, inconclusive"},
		{[]string{"reproduce", "rke2", "--result", "x.jsonl", "--repetitions", "3"}, "leave the flags of a run out"},
		{[]string{"reproduce", "rke2", "--result", "none.jsonl"}, "none.jsonl"},
		{[]string{"reproduce", "rke2", "--exact", "--own"}, "exact"},
	} {
		var out, errs bytes.Buffer
		p := &program{stdout: &out, stderr: &errs}
		if code := p.main(tt.args); code != exitUsage || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%v: exit %d: %s", tt.args, code, errs.String())
		}
	}
}

// TestImageWithoutTheTool: an image whose tag says that it has not the tool of a plan is refused before a cluster is asked.
func TestImageWithoutTheTool(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, stderr := command("reproduce", "rke2", "--exact", "--env", "kubernetes", "--kubeconfig", "none",
		"--image", "registry.example/agents:1-with-ping-wrk")
	if code != exitUsage || !strings.Contains(stderr, "agents:1-with-ping-wrk has no iperf3") || !strings.Contains(stderr, "cnibench image --with iperf3") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if made, err := os.ReadDir("."); err != nil || len(made) > 0 {
		t.Errorf("left behind: %v, %v", made, err)
	}
}
