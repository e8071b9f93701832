package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestFidelity: summary, rows and conditions are on the page; names of a cluster cannot become markup.
func TestFidelity(t *testing.T) {
	effect := func(ratio float64) stat.Effect {
		return stat.Effect{Ratio: ratio, Low: 0.999 * ratio, High: 1.001 * ratio, Confidence: 0.95, P: 0.001, N: 12, Test: stat.MannWhitney}
	}
	row := func(profile plan.Variant, lab, cluster float64, v fidelity.Verdict) fidelity.Row {
		return fidelity.Row{
			Profile: profile, Context: "a|b", Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, Workload: plan.Workload{Spec: plan.RR{}}.Normalize(),
			Metric: metric.ServiceDemand, Lab: lab, Cluster: cluster, Quotient: effect(cluster / lab), Verdict: v,
		}
	}
	kernel := 0.06
	d := report.BuildFidelity(&fidelity.Page{
		Header: result.Header{
			Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Plan: plan.Plan{Duration: 500 * time.Millisecond, Seed: 7},
			Facts: facts.Facts{facts.Kernel: "6.18", facts.KubeCNI: "a|b", facts.IdleBusy: "0.5"},
		},
		Demand: []fidelity.Row{row(plan.VariantOf("host"), 5000, 5000, ""), row(plan.VariantOf("flannel-vxlan"), 10000, 12000, fidelity.Differs)}, Kernel: &kernel, Repetitions: 12,
		Failed: []fidelity.Failure{{Case: "host@a pod-to-pod/cross-node rr", Failed: 1, Tried: 13, Kind: "timeout"}},
	})
	for _, format := range []string{"md", "txt", "json"} {
		var b bytes.Buffer
		if err := renderers[format](&b, d); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "fidelity."+format, b.Bytes())
	}
}

// contribution is what the test reads of a contributed report.
type contribution struct {
	Schema   string             `json:"schema"`
	Facts    facts.Facts        `json:"facts"`
	Verdicts []fidelity.Summary `json:"verdicts"`
	fidelity.Page
}

// contributed returns why a report is not one of `cnibench fidelity`, or does not agree with itself.
func contributed(b []byte) error {
	var c contribution
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	if c.Schema != report.FidelitySchema || len(c.Demand) == 0 || c.Facts[facts.Version] == "" || c.Facts[facts.KubeProfile] == "" {
		return fmt.Errorf("schema %q, %d rows, version %q, profile %q", c.Schema, len(c.Demand), c.Facts[facts.Version], c.Facts[facts.KubeProfile])
	}
	for _, r := range slices.Concat(c.Demand, c.Rates) {
		low, high := r.Quotient.Low, r.Quotient.High
		near := low >= 1/1.05 && high <= 1.05
		if r.Verdict == fidelity.Near && !near || r.Verdict == fidelity.Differs && low <= 1 && high >= 1 {
			return fmt.Errorf("%s %s %s: %s does not follow from [%g, %g]", r.Profile, r.Path, r.Workload, r.Verdict, low, high)
		}
	}
	if want := c.Summaries(); !reflect.DeepEqual(c.Verdicts, want) {
		return fmt.Errorf("verdicts %v do not follow from the rows: %v", c.Verdicts, want)
	}
	return nil
}

// TestContributed: the reports in docs/results/clusters are those of the command, and a changed verdict is found.
func TestContributed(t *testing.T) {
	files, err := filepath.Glob("../../docs/results/clusters/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err == nil {
			err = contributed(b)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, err := os.ReadFile("testdata/fidelity.json")
	if err != nil {
		t.Fatal(err)
	}
	good = bytes.Replace(good, []byte(`"kernel"`), []byte(`"cnibench": "1", "kube.profile": "flannel-vxlan", "kernel"`), 1)
	if err := contributed(good); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{bytes.ReplaceAll(good, []byte(`"differs"`), []byte(`"within 5 %"`)), bytes.Replace(good, []byte(`"rows": 1`), []byte(`"rows": 2`), 1), []byte("{}")} {
		if contributed(bad) == nil {
			t.Errorf("taken for a report:\n%s", bad)
		}
	}
}
