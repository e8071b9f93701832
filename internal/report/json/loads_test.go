package json

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestLoadCurves: what people see of a curve, programs can read.
func TestLoadCurves(t *testing.T) {
	r := reporttest.Loads(7)
	for i := range r.Records {
		if rec := &r.Records[i]; rec.Profile == plan.VariantOf("raw") && rec.Workload.Traits().Load == 0.1 {
			delete(rec.Metrics, "rtt.p99") // so that no knee is known
		}
	}
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	if len(got.Curves) != 5 {
		t.Fatalf("%d curves, want three between hosts and two between pods", len(got.Curves))
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
