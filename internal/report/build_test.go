package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func build(t *testing.T, r reporttest.Result, o report.Options) report.Document {
	t.Helper()
	d, err := reporttest.Build(r.Header, r.Records, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOptions(t *testing.T) {
	r := reporttest.Small(5)
	if _, err := reporttest.Build(r.Header, r.Records, report.Options{Metrics: []string{"goodputt"}}); err == nil || advice.Of(err) == "" {
		t.Errorf("unknown metric: %v, hint %q", err, advice.Of(err))
	}
	if _, err := reporttest.Build(r.Header, r.Records, report.Options{Baseline: plan.VariantOf("nosuch")}); err == nil || advice.Of(err) == "" {
		t.Errorf("unknown baseline: %v, hint %q", err, advice.Of(err))
	}
	d := build(t, r, report.Options{Metrics: []string{"rtt.p99", "softirq_share"}})
	if len(d.Sections) != 2 || d.Sections[0].Heading != "Round-trip time, 99th percentile" {
		t.Errorf("sections: %+v", d.Sections)
	}
	if mark := d.Sections[1].Tables[0].Rows[0].Entries[1].Mark(); mark != "" {
		t.Errorf("a metric without direction has mark %q", mark)
	}
	if d := build(t, r, report.Options{Metrics: []string{"goodput"}}); len(d.Sections) != 0 {
		t.Errorf("a metric that was not measured: %+v", d.Sections)
	}
}

// The page says what package compare decided, and nothing else.
func TestMarksAreVerdicts(t *testing.T) {
	d := build(t, reporttest.NinePaths(5), report.Options{})
	mark := map[compare.Verdict]string{compare.Better: "▲", compare.Worse: "▼", compare.Same: "≈", compare.Inconclusive: "?"}
	want := map[string]int{}
	for _, c := range d.Analysis.Comparisons {
		if c.Verdict != compare.None {
			want[mark[c.Verdict]]++
		}
	}
	got, unclaimed := map[string]int{}, 0
	for _, s := range d.Sections {
		for _, tab := range s.Tables {
			for _, row := range tab.Rows {
				for _, e := range row.Entries {
					if e.Mark() != "" {
						got[e.Mark()]++
					}
					if e.Verdict == compare.Inconclusive && e.Ratio != "" {
						unclaimed++
					}
				}
			}
		}
	}
	// Retransmits are judged but no headline metric.
	for _, c := range d.Analysis.Comparisons {
		if c.Metric == "retransmits_per_gb" {
			want[mark[c.Verdict]]--
		}
	}
	for m, n := range want {
		if got[m] != n {
			t.Errorf("%d marks %s, %d verdicts", got[m], m, n)
		}
	}
	if unclaimed > 0 {
		t.Errorf("%d ratios beside ~", unclaimed)
	}
}

// A profile is named as the worst only beside all that could not be told apart from it.
func TestAnswerNamesTies(t *testing.T) {
	r := reporttest.NinePaths(8)
	r.Header.Plan.Baseline = plan.VariantOf("raw")
	d := build(t, r, report.Options{})
	tied := 0
	for _, n := range d.Needs {
		claims := n.Conclusion.Claims
		worst := claims[len(claims)-1].Profile
		for _, x := range n.Conclusion.Ties {
			if x.Baseline == worst {
				tied++
				line := slices.IndexFunc(d.Lines, func(l string) bool { return strings.HasPrefix(l, n.Name+" (") })
				_, after, ok := strings.Cut(d.Lines[line], worst.String()+" (")
				if !ok || !strings.Contains(after, x.Profile.String()) {
					t.Errorf("%s ties with the last, %s, and is not named in %q", x.Profile, worst, d.Lines[line])
				}
			}
		}
	}
	if tied == 0 {
		t.Error("this run was made to have a tie")
	}
}

func TestBaselineColumn(t *testing.T) {
	d := build(t, reporttest.NinePaths(5), report.Options{})
	tab := d.Sections[0].Tables[0]
	if slices.Contains(tab.Columns, "raw") || !strings.Contains(strings.Join(tab.Notes, " "), "raw host-to-host/cross-node") {
		t.Errorf("a baseline of one cell: columns %v, notes %v", tab.Columns, tab.Notes)
	}
	if slices.Contains(tab.Columns, "bridge") {
		t.Errorf("a skipped profile has a column: %v", tab.Columns)
	}
	d = build(t, reporttest.NinePaths(5), report.Options{Baseline: plan.VariantOf("host")})
	if c := d.Sections[0].Tables[0].Columns; c[0] != "host" || !slices.Contains(c, "raw") {
		t.Errorf("a baseline with paths: %v", c)
	}
}

func TestRun(t *testing.T) {
	end := func(reason string, wall, windows int64, trials int) result.Record {
		return result.Record{Type: result.TypeEnd, Status: result.OK, End: &result.End{Reason: reason, WallNs: wall, WindowNs: windows, Trials: trials}}
	}
	small := reporttest.Small(2) // 6 trials of 330 ms, 300 ms of them in the window
	for _, c := range []struct {
		name    string
		recs    []result.Record
		reason  string
		wall    time.Duration
		windows time.Duration
	}{
		{"killed", small.Records, "unfinished", 1980 * time.Millisecond, 1800 * time.Millisecond},
		{"ended", append(slices.Clone(small.Records), end("budget", 3e9, 2e9, 6)), "budget", 3 * time.Second, 2 * time.Second},
		{"resumed", slices.Concat(small.Records[:3], []result.Record{end("interrupted", 1e9, 9e8, 3)}, small.Records[3:], []result.Record{end("complete", 2e9, 1e9, 3)}), "complete", 3 * time.Second, 1900 * time.Millisecond},
		// Four trials of an invocation that left no end, then two of one that did.
		{"killed and resumed", append(slices.Clone(small.Records), end("complete", 1e9, 6e8, 2)), "complete", 2320 * time.Millisecond, 1800 * time.Millisecond},
		{"resumed and killed", slices.Concat(small.Records[:3], []result.Record{end("interrupted", 1e9, 9e8, 3)}, small.Records[3:]), "unfinished", 1980 * time.Millisecond, 1800 * time.Millisecond},
	} {
		r := build(t, reporttest.Result{Header: small.Header, Records: c.recs}, report.Options{}).Run
		if r.Reason != c.reason || r.Wall != c.wall || r.Windows != c.windows || r.Trials != 6 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	if (report.Run{}).Share() != 0 {
		t.Error("share of no time")
	}
}

// The command can be typed: what flags carry reads back as the same plan.
func TestCommand(t *testing.T) {
	r := reporttest.Small(5)
	r.Header.Plan.Workloads = []plan.Workload{plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Rate: 1e9}}.Normalize()}
	r.Header.Plan.Precision, r.Header.Plan.Budget = 0.05, 4*time.Minute
	d := build(t, r, report.Options{})
	want := "cnibench run --env lab --profiles host,calico-vxlan --paths pod-to-pod/cross-node --workloads 'stream(udp,rate=1G)' --repetitions 5 --precision 0.05 --duration 500ms --budget 4m0s --baseline host --seed 1"
	if d.Run.Command != want {
		t.Errorf("got  %s\nwant %s", d.Run.Command, want)
	}
	r.Header.Plan.Twin, r.Header.Plan.Lab.LineRate, r.Header.Plan.Lab.NIC, r.Header.Plan.Lab.MTU = false, 1e10, "wire", 9000
	if got := build(t, r, report.Options{}).Run.Command; !strings.HasSuffix(got, " --seed 1 --nic wire --mtu 9000 --line-rate 10G --no-twin") {
		t.Errorf("the lab's settings: %s", got)
	}
	r.Header.Plan.Profiles = plan.Variants("it's; rm -rf $HOME")
	if got := build(t, r, report.Options{}).Run.Command; !strings.Contains(got, `--profiles 'it'\''s; rm -rf $HOME'`) {
		t.Errorf("not quoted: %s", got)
	}
	r.Header.Plan.Profiles = plan.Variants("~root")
	if got := build(t, r, report.Options{}).Run.Command; !strings.Contains(got, `--profiles '~root'`) {
		t.Errorf("a shell would expand: %s", got)
	}
	r.Header.Origin = "iperf3"
	if got := build(t, r, report.Options{}).Run.Command; got != "" {
		t.Errorf("an imported result cannot be repeated by %s", got)
	}
}

func TestFootnotes(t *testing.T) {
	d := build(t, reporttest.NinePaths(5), report.Options{})
	for _, s := range d.Sections {
		for _, tab := range s.Tables {
			for _, row := range tab.Rows {
				for j, e := range row.Entries {
					for _, n := range e.Notes {
						if n < 1 || n > len(d.Footnotes) {
							t.Errorf("footnote %d of %d", n, len(d.Footnotes))
						}
					}
					if e.Kind == report.Failed && (tab.Columns[j] != "ptp" || len(e.Notes) == 0 || e.Text != "failed (5 of 5)") {
						t.Errorf("failed: %s %+v", tab.Columns[j], e)
					}
				}
			}
		}
	}
	// What is true of every cell is said once and marks none.
	d = build(t, reporttest.Small(1), report.Options{})
	if len(d.Footnotes) != 1 || !strings.Contains(d.Footnotes[0], "every cell") || len(d.Sections[0].Tables[0].Rows[0].Entries[0].Notes) != 0 {
		t.Errorf("footnotes %q", d.Footnotes)
	}
}
