package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// journeys are those of traces of a real lab.
func journeys(t *testing.T) report.JourneyPage {
	t.Helper()
	page := report.JourneyPage{Transactions: 30}
	for _, profile := range []string{"flannel-vxlan", "cilium-native"} {
		b, err := os.ReadFile("../judge/itinerary/testdata/" + profile + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var trace journey.Trace
		if err := json.Unmarshal(b, &trace); err != nil {
			t.Fatal(err)
		}
		i, err := itinerary.Of(trace)
		if err != nil {
			t.Fatal(err)
		}
		page.Journeys = append(page.Journeys, i)
	}
	page.Leave(plan.VariantOf("macvlan"), plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, plan.Workload{Spec: plan.RR{}}.Normalize(), "not served: <no kube-proxy>")
	return page
}

func TestJourney(t *testing.T) {
	page := journeys(t)
	d := report.BuildJourney(page)
	for _, format := range []string{"md", "txt"} {
		var b bytes.Buffer
		if err := renderers[format](&b, d); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "journey."+format, b.Bytes())
	}
	pictures := page.Figures()
	if len(pictures) != 1 {
		t.Fatalf("%d pictures of one path", len(pictures))
	}
	var b bytes.Buffer
	if err := plot.WriteSVG(&b, plot.Framed(pictures[0].Drawing)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "journey.svg", b.Bytes())
}

// TestJourneyJSON: programs get every step in ns, and what was left out.
func TestJourneyJSON(t *testing.T) {
	page := journeys(t)
	var b bytes.Buffer
	if err := renderers["json"](&b, report.BuildJourney(page)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema   string
		Journeys []itinerary.Itinerary
		Left     []report.Left
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != report.JourneySchema || len(got.Journeys) != 2 || len(got.Left) != 1 || len(got.Journeys[0].Steps) != len(page.Journeys[0].Steps) {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(b.String(), `"point": "hook-end"`) {
		t.Error("points have no names")
	}
}
