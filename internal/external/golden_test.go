package external

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// What reads files knows the workload, whose package stands above.
func init() { plan.Quiet{Name: "idle"}.Register() }

// samples returns the inputs under TOOL/testdata/FORMAT.
func samples(t testing.TB, format string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("*", "testdata", format, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(f string) bool {
		return strings.HasSuffix(f, ".golden") || strings.HasSuffix(f, ".got")
	})
}

// TestGolden decodes every sample, as the format of its folder and as detected, and compares what comes out.
func TestGolden(t *testing.T) {
	names, _ := Formats()
	for _, name := range names {
		files := samples(t, name)
		if len(files) == 0 && name != "cni-benchmark" && name != "knb-data" {
			t.Errorf("format %s has no sample", name)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(name, b)
			golden.Check(t, "../"+file+".golden", dump(got, err))
			if found, err := Detect(b); found != name {
				t.Errorf("%s is detected as %q, %v", file, found, err)
			}
		}
	}
}

// dump writes a batch for people.
func dump(b Batch, err error) []byte {
	var w bytes.Buffer
	if err != nil {
		fmt.Fprintf(&w, "error: %v\nhint: %s\n", err, advice.Of(err))
		return w.Bytes()
	}
	fmt.Fprintf(&w, "tool %s, title %q, environment %q, baseline %q, created %s, warmup %s\n", b.Tool, b.Title, b.Environment, b.Baseline, b.Created.Format("2006-01-02T15:04:05Z"), b.Warmup)
	for _, n := range b.Facts.Names() {
		fmt.Fprintf(&w, "fact %s: %s\n", n, b.Facts[n])
	}
	for _, r := range b.Readings {
		path := ""
		if r.Path != (plan.Path{}) {
			path = r.Path.String()
		}
		fmt.Fprintf(&w, "\n%s %s %s, repetition %d, started %s, window %s\n", r.Profile, path, r.Workload, r.Repetition, r.Started.Format("2006-01-02T15:04:05Z"), r.Window)
		for _, m := range slices.Sorted(maps.Keys(r.Metrics)) {
			fmt.Fprintf(&w, "  %s = %.9g\n", m, r.Metrics[m])
		}
		for _, condition := range r.Conditions {
			fmt.Fprintf(&w, "  condition %s\n", condition)
		}
		if f := r.Failure; f != nil {
			fmt.Fprintf(&w, "  failed: %s: %s\n", f.Kind, f.Message)
		}
		for _, q := range r.Warnings {
			fmt.Fprintf(&w, "  warning %s: %s\n", q.ID, q.Message)
		}
		if o := r.Client; o != nil {
			for _, i := range o.Intervals {
				fmt.Fprintf(&w, "  interval %d to %d ns: %d B, warmup %v\n", i.StartNs, i.EndNs, i.Bytes, i.Warmup)
			}
		}
	}
	for _, s := range b.LeftOut {
		fmt.Fprintf(&w, "left out: %s\n", s)
	}
	return w.Bytes()
}
