package report_test

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// paragraph is the one that is ready to paste.
func paragraph(t *testing.T, d report.Document) string {
	t.Helper()
	for _, s := range d.Appendix {
		for _, i := range s.Items {
			if i.Name == "paragraph" {
				return i.Text
			}
		}
	}
	t.Fatal("there is no paragraph")
	return ""
}

// TestMethodsSayWhatIsKnown: of an imported file the paragraph says neither who measured nor where, unless the file does.
func TestMethodsSayWhatIsKnown(t *testing.T) {
	for _, c := range []struct{ origin, environment, want, never string }{
		{"", "lab", "We measured 2 profiles in the lab of cnibench", "does not say"},
		{"", "kubernetes", "We measured 2 profiles on a Kubernetes cluster", "does not say"},
		{"iperf3 3.12", "", "The numbers of 2 profiles are from iperf3 3.12, which does not say where it ran: ", "Kubernetes"},
		{"csv", "", "The numbers of 2 profiles are from a CSV file, which does not say where it ran: ", "Kubernetes"},
		{"knb 1.5.0", "kubernetes", "The numbers of 2 profiles are from knb 1.5.0 on a Kubernetes cluster: ", "We measured"},
		{"iperf3 3.12", "lab", "are from iperf3 3.12 in a lab: ", "lab of cnibench"},
	} {
		r := reporttest.Small(4)
		r.Header.Origin, r.Header.Plan.Environment = c.origin, c.environment
		if got := paragraph(t, build(t, r, report.Options{})); !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
			t.Errorf("origin %q, environment %q: %s", c.origin, c.environment, got)
		}
	}
}

// TestMethodsCountRepetitions: where cases were measured unequally often the paragraph says from and to, and how many most
// had.
func TestMethodsCountRepetitions(t *testing.T) {
	all := paragraph(t, build(t, reporttest.Small(4), report.Options{}))
	if !strings.Contains(all, "Each case had 4 repetitions, ") {
		t.Errorf("equal repetitions: %s", all)
	}
	// One case more often than all others.
	few := reporttest.Small(4)
	first := few.Records[0]
	for i := range few.Records {
		if few.Records[i].Type == result.TypeTrial {
			first = few.Records[i]
			break
		}
	}
	for n := range 6 {
		more := first
		more.Repetition = 5 + n
		few.Records = append(few.Records, more)
	}
	got := paragraph(t, build(t, few, report.Options{}))
	if !strings.Contains(got, "Cases had 4 to 10 repetitions (") || !strings.Contains(got, " had 4), ") || strings.Contains(got, "Each case") {
		t.Errorf("unequal repetitions: %s", got)
	}
}

// TestSummarySaysWhyNot: what was not measured stands in the summary with its reason.
func TestSummarySaysWhyNot(t *testing.T) {
	d := build(t, reporttest.NinePaths(4), report.Options{})
	want := "Not measured here: bridge (the kernel has no br_netfilter)."
	if all := strings.Join(d.Summary.Notes, "\n"); !strings.Contains(all, want) {
		t.Errorf("notes:\n%s\nwant %q", all, want)
	}
}
