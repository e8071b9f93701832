package spreadsheet

import (
	"bytes"
	"encoding/csv"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func render(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	return reporttest.Render(t, r, Render)
}

func samples(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	s, err := NewSamples(&b, r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Records {
		if err := s.Add(&r.Records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for name, r := range reporttest.Cases {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".csv", render(t, r))
			golden.Check(t, name+".samples.csv", samples(t, r))
		})
	}
}

// Whatever is in the file, every row has its columns, numbers are numbers, and no text is a formula.
func TestRows(t *testing.T) {
	big := reporttest.NinePaths(5)
	for name, r := range map[string]reporttest.Result{"nine-paths": big, "hostile": reporttest.Cases["hostile"], "not-numbers": reporttest.Cases["not-numbers"], "formulas": formulas()} {
		rows, err := csv.NewReader(bytes.NewReader(render(t, r))).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(rows) < 2 || !slices.Equal(rows[0], Columns) {
			t.Fatalf("%s: %d rows, columns %q", name, len(rows), rows[0])
		}
		for _, row := range rows[1:] {
			for i, field := range row {
				if slices.Contains(Numbers, Columns[i]) {
					if v, err := strconv.ParseFloat(field, 64); field != "" && (err != nil || math.IsNaN(v) || math.IsInf(v, 0)) {
						t.Errorf("%s: %s is %q", name, Columns[i], field)
					}
				} else if s := strings.TrimSpace(field); s != "" && strings.ContainsAny(s[:1], "=+-@\t\r#") {
					t.Errorf("%s: %s may be computed: %q", name, Columns[i], field)
				}
			}
		}
	}
}

// formulas is a result whose names are what a spreadsheet would run.
func formulas() reporttest.Result {
	r := reporttest.Small(3)
	evil := []string{`=HYPERLINK("http://x","y")`, "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "# gone"}
	for i := range r.Records {
		r.Records[i].Profile = plan.VariantOf(evil[i%len(evil)])
		r.Records[i].Warnings = []sample.Warning{{ID: evil[(i+1)%len(evil)], Message: "m"}}
	}
	return r
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"calico-vxlan": "calico-vxlan", "": "", "=1": "'=1", "+x": "'+x", "-x": "'-x", "@x": "'@x", "\t=1": "' =1", "\r=1": "' =1",
		"  -1": "'  -1", "＝1": "'＝1", "#x": "'#x", "a=1": "a=1", "'=1": "'=1", "a\nb": "a b", "\x1b[2J": "\ufffd[2J",
	} {
		if got := fieldText(in); got != want {
			t.Errorf("text(%q) = %q, want %q", in, got, want)
		}
	}
}

// What Samples writes, import reads: the same trials with the same numbers, failed ones with their reason.
func TestRoundTrip(t *testing.T) {
	in := reporttest.NinePaths(3)
	for i := range in.Records {
		in.Records[i].Warnings = append(in.Records[i].Warnings, sample.Warning{ID: "rounded", Message: "three, digits"}, sample.Warning{ID: "note", Message: "=1"}, sample.Warning{ID: "rounded", Message: "again"})
	}
	in.Header.Facts["odd.Name"], in.Header.Facts["date"], in.Header.Facts["url"] = "x", "never", "//x"
	b, err := external.Read(bytes.NewReader(samples(t, in)), "samples.csv", "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := external.Contents(b)
	if err != nil {
		t.Fatal(err)
	}
	h := out.Header
	if h.Plan.Name != in.Header.Plan.Name || h.Plan.Baseline != in.Header.Plan.Baseline || h.Plan.Environment != in.Header.Plan.Environment || !h.Created.Equal(in.Header.Created) {
		t.Errorf("header %+v", h)
	}
	for _, name := range []string{facts.Kernel, facts.Placement, facts.LoadAverage} {
		if h.Facts[name] != in.Header.Facts[name] {
			t.Errorf("fact %s: %q", name, h.Facts[name])
		}
	}
	want, got := trials(in.Records), trials(out.Records)
	if len(want) != len(got) {
		t.Fatalf("%d trials of %d", len(got), len(want))
	}
	failed := 0
	for k, w := range want {
		g := got[k]
		if g.Status != w.Status || g.WindowNs != w.WindowNs && w.Status == result.OK || !reflect.DeepEqual(rounded(g.Metrics), rounded(w.Metrics)) {
			t.Fatalf("%v: %+v, want %+v", k, g, w)
		}
		if len(g.Warnings) != len(w.Warnings) {
			t.Errorf("%v: warnings %v, want %v", k, g.Warnings, w.Warnings)
		}
		for i := range min(len(g.Warnings), len(w.Warnings)) {
			if g.Warnings[i].ID != w.Warnings[i].ID || !strings.HasSuffix(g.Warnings[i].Message, w.Warnings[i].Message) {
				t.Errorf("%v: warning %v, want %v", k, g.Warnings[i], w.Warnings[i])
			}
		}
		if w.Status == result.Failed {
			failed++
			if !strings.Contains(g.Error.Message, w.Error.Message) || !strings.Contains(g.Error.Message, w.Error.Kind) {
				t.Errorf("%v: %q, want %q", k, g.Error.Message, w.Error.Message)
			}
		}
	}
	if failed == 0 {
		t.Error("no failed trial was looked at")
	}
}

func trials(recs []result.Record) map[plan.Trial]result.Record {
	out := map[plan.Trial]result.Record{}
	for _, r := range recs {
		if r.Type == result.TypeTrial {
			r.Workload = r.Workload.Normalize()
			out[r.Trial] = r
		}
	}
	return out
}

// rounded takes the last digits off, which a conversion of units may change.
func rounded(m map[string]float64) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = strconv.FormatFloat(v, 'g', 14, 64)
	}
	return out
}

// Every metric of the catalogue has a unit that import knows.
func TestUnits(t *testing.T) {
	r := reporttest.Small(1)
	for i := range r.Records {
		r.Records[i].Metrics = map[string]float64{}
		for _, m := range metric.All() {
			r.Records[i].Metrics[m.Name] = 1.5
		}
	}
	b, err := external.Read(bytes.NewReader(samples(t, r)), "samples.csv", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, reading := range b.Readings {
		if len(reading.Metrics) != len(metric.All()) {
			t.Errorf("%d metrics of %d", len(reading.Metrics), len(metric.All()))
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("=1", "a,\"b\"")
	f.Add("\r\n@x", "\xff\x00;#")
	f.Fuzz(func(t *testing.T, a, b string) {
		var out bytes.Buffer
		w := csv.NewWriter(&out)
		want := []string{fieldText(a), fieldText(b), "1"}
		if err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(rows) != 1 || !slices.Equal(rows[0], want) {
			t.Fatalf("%q, %q: %q, %v", a, b, rows, err)
		}
		for _, s := range want {
			if s = strings.TrimSpace(s); s != "" && strings.ContainsAny(s[:1], "=+-@#\t\r\n") {
				t.Fatalf("%q may be computed", s)
			}
		}
	})
}
