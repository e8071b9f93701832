package json

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestLoadCurves: what people see of a curve, programs can read.
func TestLoadCurves(t *testing.T) {
	r := reporttest.Loads(7)
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Loads[0].Lines[0].Knee = report.Knee{}
	var b bytes.Buffer
	if err := Render(&b, d); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Curves []struct {
			Profile, Path, Workload string
			Capacity                float64
			Low                     *float64 `json:"knee_low"`
			High                    *float64 `json:"knee_high"`
			Points                  []struct{ Load, P50, P99 float64 }
		} `json:"load_curves"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, c := range d.Loads {
		lines += len(c.Lines)
	}
	if len(got.Curves) != lines || lines == 0 {
		t.Fatalf("%d curves, want %d", len(got.Curves), lines)
	}
	for i, c := range got.Curves {
		if c.Profile == "" || c.Path == "" || c.Workload != "rr" || c.Capacity <= 0 || len(c.Points) != 5 || c.Points[4].P99 <= c.Points[0].P50 {
			t.Errorf("%+v", c)
		}
		if unknown := i == 0; (c.Low == nil) != unknown || !unknown && (*c.Low != 0.5 || *c.High != 0.5) {
			t.Errorf("%s: knee %v to %v", c.Profile, c.Low, c.High)
		}
	}
}
