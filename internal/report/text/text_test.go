package text

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func render(t *testing.T, r reporttest.Result, b report.Options, o Options) []byte {
	t.Helper()
	d, err := reporttest.Build(r.Header, r.Records, b)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, d, o)
}

func written(t *testing.T, d report.Document, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Render(&out, d, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  reporttest.Result
		build report.Options
		opt   Options
	}{
		{"nine-paths-80.txt", reporttest.NinePaths(5), report.Options{}, Options{}},
		{"nine-paths-200.txt", reporttest.NinePaths(8), report.Options{}, Options{Width: 200}},
		{"nine-paths-host.txt", reporttest.NinePaths(5), report.Options{Baseline: plan.VariantOf("host"), Metrics: []string{"service_demand", "softirq_share"}}, Options{Width: 120}},
		{"impact.txt", reporttest.NinePaths(5), report.Options{Metrics: []string{"goodput"}, Baseline: plan.VariantOf("canal"), Impact: reporttest.Job()}, Options{}},
		{"impact-wide.txt", reporttest.NinePaths(8), report.Options{Metrics: []string{"goodput"}, Impact: reporttest.Job()}, Options{Width: 200}},
		{"small-color.txt", reporttest.Small(5), report.Options{}, Options{Color: true}},
		{"one-trial.txt", reporttest.Small(1), report.Options{}, Options{}},
		{"all-failed.txt", reporttest.AllFailed(), report.Options{}, Options{}},
		{"not-numbers.txt", reporttest.NotNumbers(), report.Options{}, Options{}},
		{"hostile.txt", reporttest.Hostile(), report.Options{}, Options{}},
		{"growth.txt", reporttest.Growth(), report.Options{}, Options{}},
		{"empty.txt", reporttest.Result{}, report.Options{}, Options{}},
	} {
		c.opt.All = true
		t.Run(c.name, func(t *testing.T) { golden.Check(t, c.name, render(t, c.from, c.build, c.opt)) })
	}
	for _, c := range []struct {
		name string
		from reporttest.Result
		opt  Options
	}{
		{"summary-80.txt", reporttest.NinePaths(6), Options{ASCII: true}},
		{"summary-signs.txt", reporttest.NinePaths(6), Options{Width: 120}},
		{"summary-small.txt", reporttest.Small(6), Options{ASCII: true}},
		{"summary-failed.txt", reporttest.AllFailed(), Options{ASCII: true}},
		{"summary-hostile.txt", reporttest.Hostile(), Options{ASCII: true}},
	} {
		t.Run(c.name, func(t *testing.T) { golden.Check(t, c.name, render(t, c.from, report.Options{}, c.opt)) })
	}
}

// A summary fits on a screen, however many profiles there are; what has no room is said.
func TestSummaryFits(t *testing.T) {
	many := reporttest.NinePaths(2)
	more := many.Records
	for i := range 30 {
		name := plan.VariantOf(fmt.Sprintf("calico-vxlan(services=%d)", i+1))
		many.Header.Plan.Profiles = append(many.Header.Plan.Profiles, name)
		for _, rec := range more {
			if rec.Profile == plan.VariantOf("calico-vxlan") {
				rec.Profile = name
				many.Records = append(many.Records, rec)
			}
		}
	}
	// A heading has a line more where the options of two workloads of one need tell its columns apart.
	bulks := reporttest.NinePaths(2)
	flows := plan.Workload{Spec: plan.Stream{Flows: 4}}.Normalize()
	bulks.Header.Plan.Workloads = append(bulks.Header.Plan.Workloads, flows)
	for _, rec := range slices.Clone(bulks.Records) {
		if rec.Workload.Kind() == "stream" {
			rec.Workload = flows
			bulks.Records = append(bulks.Records, rec)
		}
	}
	for name, r := range map[string]reporttest.Result{"many": many, "bulks": bulks, "nine": reporttest.NinePaths(6), "failed": reporttest.AllFailed(), "small": reporttest.Small(2)} {
		d, err := reporttest.Build(r.Header, r.Records, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{40, 60, 80, 120, 200} {
			for _, ascii := range []bool{false, true} {
				out := written(t, d, Options{Width: width, ASCII: ascii})
				if n := bytes.Count(out, []byte("\n")); n > screen && (name != "bulks" || width > 40) { // its needs alone take a screen there
					t.Errorf("%s at %d columns: %d lines", name, width, n)
				}
				if name == "many" && !bytes.Contains(out, []byte("more profiles: --all.")) {
					t.Errorf("%s at %d columns: rows are left out without a word", name, width)
				}
				for line := range strings.Lines(string(out)) {
					if w := number.Width(strings.TrimSuffix(line, "\n")); w > width && !strings.Contains(line, "  cnibench ") {
						t.Errorf("%s at %d columns: %d: %s", name, width, w, line)
					}
				}
			}
		}
	}
}

// Without UTF-8 a report of known names is ASCII, in words.
func TestASCII(t *testing.T) {
	for _, all := range []bool{false, true} {
		out := render(t, reporttest.NinePaths(6), report.Options{}, Options{ASCII: true, All: all})
		if i := bytes.IndexFunc(out, func(r rune) bool { return r > 127 }); i >= 0 {
			t.Errorf("all %v: %q", all, out[i:min(len(out), i+60)])
		}
		if !bytes.Contains(out, []byte(" worse")) {
			t.Errorf("all %v: no verdict in words", all)
		}
	}
}

// A profile without policies is not best for a reader who needs them.
func TestBestWithFunction(t *testing.T) {
	out := string(render(t, reporttest.NinePaths(6), report.Options{}, Options{ASCII: true}))
	for _, want := range []string{"requests  macvlan; NetworkPolicy calico-underlay 1.", "; worst canal 1.", "With encryption: none was measured; flannel-wireguard has it."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestTableFirst: the first screen begins with the table. It has every need at 80 columns, a verdict for the host, and the
// baseline; a line for each need follows, and why a pod needs less than the host.
func TestTableFirst(t *testing.T) {
	for _, ascii := range []bool{true, false} {
		out := string(render(t, reporttest.NinePaths(6), report.Options{}, Options{ASCII: ascii}))
		all := strings.Split(out, "\n")
		top := slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, "requests") })
		if top < 0 || top > 6 {
			t.Fatalf("the table begins at line %d of\n%s", top+1, out)
		}
		all = all[top-3:]
		for _, want := range []string{"requests", "connects", "bulk", "Services", "tail", "does", "proof"} {
			if !strings.Contains(all[3], want) {
				t.Errorf("no column %s in %q", want, all[3])
			}
		}
		rows := map[string]string{}
		for _, l := range all[5:12] {
			name, rest, _ := strings.Cut(l, " ")
			rows[name] = rest
		}
		worse := map[bool]string{true: " w ", false: " ▼ "}[ascii]
		if !strings.Contains(rows["host"], worse) || strings.Contains(rows["raw"], worse) || rows["raw"] == "" {
			t.Errorf("host %q, raw %q", rows["host"], rows["raw"])
		}
		for _, want := range []string{"raw is the baseline, measured host to host.", "macvlan needs less than the host: its packets bypass"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	}
	wide := string(render(t, reporttest.NinePaths(6), report.Options{}, Options{ASCII: true, Width: 140}))
	if !regexp.MustCompile(`(?m)^  requests +macvlan; with NetworkPolicy calico-underlay 1\.\d+x \(1\.\d+x to 1\.\d+x\); worst canal \S+ \(.*\)$`).MatchString(wide) {
		t.Errorf("no line with intervals in\n%s", wide)
	}
	if !strings.Contains(wide, "1.23 worse") {
		t.Errorf("words have room:\n%s", wide)
	}
}

// No line is wider than the terminal, but for the command that is to be copied and single words that are longer.
func TestFits(t *testing.T) {
	r := reporttest.NinePaths(5)
	for _, width := range []int{60, 80, 100, 132, 200, 400} {
		for line := range strings.Lines(string(render(t, r, report.Options{}, Options{Width: width, All: true}))) {
			line = strings.TrimSuffix(line, "\n")
			if w := number.Width(line); w > width && !strings.Contains(line, "cnibench run --env") {
				t.Errorf("width %d: %d columns: %s", width, w, line)
			}
		}
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Colours change nothing but the colour, and there are none unless asked for.
func TestColor(t *testing.T) {
	r := reporttest.NinePaths(5)
	plain := render(t, r, report.Options{}, Options{Width: 120, All: true})
	colored := render(t, r, report.Options{}, Options{Width: 120, Color: true, All: true})
	if bytes.Contains(plain, []byte("\x1b")) {
		t.Error("escape sequences without being asked")
	}
	if bytes.Equal(plain, colored) {
		t.Error("no colours though asked for")
	}
	if got := escapes.ReplaceAll(colored, nil); !bytes.Equal(got, plain) {
		t.Error("colours move the text")
	}
}

// Every value of the document is on the page, at any width.
func TestNothingIsLost(t *testing.T) {
	r := reporttest.NinePaths(5)
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{40, 80, 200} {
		var b bytes.Buffer
		if err := Render(&b, d, Options{Width: width, All: true}); err != nil {
			t.Fatal(err)
		}
		var want int
		for _, s := range d.Sections {
			for _, tab := range s.Tables {
				for _, row := range tab.Rows {
					for _, e := range row.Entries {
						if e.Ratio != "" {
							want++
						}
					}
				}
			}
		}
		if got := len(regexp.MustCompile(`\d\d?x[▲▼≈]`).FindAll(b.Bytes(), -1)); got != want {
			t.Errorf("width %d: %d ratios on the page, %d in the document", width, got, want)
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	if out := render(t, reporttest.Hostile(), report.Options{}, Options{}); bytes.ContainsAny(out, "\x1b\x00\r\t") {
		t.Errorf("control characters in %q", out)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := Render(full{}, report.Document{}, Options{}); err == nil {
		t.Error("a write error is lost")
	}
}

func TestWrapName(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"calico-underlay", 10, "[calico- underlay]"},
		{"calico-underlay", 15, "[calico-underlay]"},
		{"raw", 2, "[raw]"},
		{"", 5, "[]"},
		{"cilium-native-legacy", 14, "[cilium-native- legacy]"},
	} {
		if got := fmt.Sprint(wrapName(c.name, c.width)); got != c.want {
			t.Errorf("%s in %d: got %s, want %s", c.name, c.width, got, c.want)
		}
	}
}
