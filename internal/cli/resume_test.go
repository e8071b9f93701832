package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestLostRunIsToldHowToGoOn: the advice is a command that leads to the same cluster, after what the error itself advises.
func TestLostRunIsToldHowToGoOn(t *testing.T) {
	for _, tt := range []struct {
		err        error
		kubeconfig string
		want       string
	}{
		{nil, "", ""},
		{errors.New("disk full"), "", ""},
		{&run.LostError{Err: errors.New("pod gone")}, "", "finished trials are kept; when the cluster is ready again, resume: cnibench run --resume -o r.jsonl"},
		{fmt.Errorf("x: %w", &run.LostError{Err: advice.With(errors.New("401"), "log in again")}), "/k",
			"log in again; finished trials are kept; when the cluster is ready again, resume: cnibench run --resume -o r.jsonl --kubeconfig /k"},
	} {
		a := measurement{program: &program{stderr: &bytes.Buffer{}, kubeconfig: tt.kubeconfig}, output: "r.jsonl"}
		err := a.addResumeHint(tt.err)
		if (err == nil) != (tt.err == nil) || !errors.Is(err, tt.err) || advice.Of(err) != tt.want {
			t.Errorf("%v: hint %q, want %q", tt.err, advice.Of(err), tt.want)
		}
	}
}

// TestDryRunOfResume: the plan is that of the file, more repetitions are allowed, another plan is refused, and the file
// stays as it is.
func TestDryRunOfResume(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := result.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	was := plan.Default()
	was.Profiles, was.Paths, was.Workloads = plan.Variants("canal", "macvlan"), was.Paths[:1], was.Workloads[:1]
	was.Repetitions, was.Duration, was.Budget, was.Seed = 6, time.Second, 0, 7
	err = w.Header(result.Header{Schema: result.Schema, Plan: was})
	for _, c := range was.Cases() {
		err = errors.Join(err, w.Append(result.Record{Status: result.OK, Trial: plan.Trial{Case: c, Repetition: 1}}))
	}
	before, read := os.ReadFile(name)
	if err = errors.Join(err, read, w.Close()); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		says []string
	}{
		"":                                 {exitFine, []string{"canal, macvlan", "6 repetitions", name + " has 4 trials already"}},
		"--repetitions 20":                 {exitFine, []string{"canal, macvlan", "20 repetitions"}},
		"--repetitions 20 --paths nowhere": {exitUsage, []string{"nowhere"}},
		"--workloads crr":                  {exitUsage, []string{"the plan differs from the one in the result file in: workloads"}},
	} {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &out}
		code := p.main(append([]string{"run", "--resume", "--dry-run", "-o", name}, strings.Fields(args)...))
		for _, w := range want.says {
			if code != want.code || !strings.Contains(out.String(), w) {
				t.Errorf("%q: code %d, want %d and %q: %s", args, code, want.code, w, out.String())
			}
		}
	}
	if after, err := os.ReadFile(name); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is another: %v", err)
	}
}
