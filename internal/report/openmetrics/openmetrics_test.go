package openmetrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func build(t *testing.T, r reporttest.Result) report.Document {
	t.Helper()
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func render(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, build(t, r)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// every is what is written of everyMetric.
var every = sync.OnceValues(func() (string, error) {
	r := everyMetric()
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = Render(&b, d)
	return b.String(), err
})

func TestGolden(t *testing.T) {
	for name, r := range reporttest.Cases {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".txt", render(t, r)) })
	}
}

// allNames are all samples that an exposition can have, in its order.
func allNames() []string {
	var names []string
	for _, f := range []family{runInfo, factInfo, profileInfo, runTrials, runWall, runWindow} {
		names = append(names, f.sampleName())
	}
	for _, g := range catalogueGroups() {
		for _, bound := range bounds {
			names = append(names, g.boundFamily(bound.words, bound.help).name)
		}
	}
	for _, f := range []family{cellValues, cellConfidence, cellFailed, cellDoubts, ratio, ratioLow, ratioHigh, pValue, verdict, floor} {
		names = append(names, f.sampleName())
	}
	return names
}

// Every exposition keeps the rules of OpenMetrics 1.0, and every sample's name is one of Names.
func TestStrict(t *testing.T) {
	names := allNames()
	everything := map[string]reporttest.Result{"nine-paths": reporttest.NinePaths(5), "every metric": everyMetric()}
	metrics, err := every()
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range reporttest.Cases {
		everything[name] = r
	}
	for name, r := range everything {
		text := metrics
		if name != "every metric" {
			text = string(render(t, r))
		}
		samples, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range samples {
			if !slices.Contains(names, s.name) {
				t.Errorf("%s: %s is not among Names", name, s.name)
			}
			if s.time != strconv.FormatInt(r.Header.Created.Unix(), 10) && !r.Header.Created.IsZero() {
				t.Errorf("%s: time %q", name, s.time)
			}
		}
	}
}

// Names are all different, follow the rules, and are complete: a result with every metric has all those of the catalogue.
func TestNames(t *testing.T) {
	names := allNames()
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] || !nameRule.MatchString(n) {
			t.Errorf("name %q", n)
		}
		seen[n] = true
	}
	text, err := every()
	if err != nil {
		t.Fatal(err)
	}
	samples, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		delete(seen, s.name)
	}
	for _, n := range []string{cellDoubts.name, floor.name, cellFailed.name} { // not of every result
		delete(seen, n)
	}
	if len(seen) > 0 {
		t.Errorf("not seen: %v", seen)
	}
	for _, k := range plan.Kinds() {
		if work := k.Default().Traits().Work; work != "" && !slices.Contains(works, work) {
			t.Errorf("%s: the unit of work %q has no families", k, work)
		}
	}
	for _, m := range metric.All() {
		for _, u := range possibleUnits(m) {
			if _, ok := bases[u]; !ok {
				t.Errorf("%s: the unit %q has no base unit", m.Name, u)
			}
		}
	}
}

// everyMetric is a result with each metric of the catalogue under workloads of each unit of work.
func everyMetric() reporttest.Result {
	r := reporttest.NinePaths(4)
	r.Header.Plan.Workloads = append(r.Header.Plan.Workloads, plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}.Normalize(), plan.Workload{Spec: plan.HTTP{}}.Normalize(), plan.Kind("ttfr").Default(), plan.Kind("job").Default(), plan.Kind("dns").Default())
	for i := range r.Records {
		rec := &r.Records[i]
		switch {
		case rec.Type != "trial":
			continue
		case rec.Workload.Traits().Bulk() && rec.Path.From == plan.Host:
			rec.Workload = plan.Workload{Spec: plan.Stream{Protocol: plan.UDP}}.Normalize()
		case rec.Workload.Kind() == "crr" && rec.Path.From == plan.Host:
			rec.Workload = plan.Workload{Spec: plan.HTTP{}}.Normalize()
		case rec.Workload.Kind() == "crr" && rec.Path.To == plan.Host:
			rec.Workload = plan.Kind("ttfr").Default()
		case rec.Workload.Kind() == "rr" && rec.Path.From == plan.Host:
			rec.Workload = plan.Kind("job").Default()
		case rec.Workload.Kind() == "rr" && rec.Path.To == plan.Service:
			rec.Workload = plan.Kind("dns").Default()
		}
		if rec.Metrics == nil {
			continue
		}
		for j, m := range metric.All() {
			rec.Metrics[m.Name] = float64(i + j + 1)
		}
	}
	return r
}

// Values are in base units: those of the catalogue divided by what is written here from the definition of the units.
func TestValues(t *testing.T) {
	r := reporttest.Small(1)
	for i := range r.Records {
		r.Records[i].Metrics = map[string]float64{
			metric.ServiceDemand: 2500, metric.Goodput: 8e9, metric.TransactionRate: 40, "rtt.p99": 1e6, "rtt.p99.9": 3e9,
			metric.RetransmitsPerG: 4, metric.Memory: 4096, metric.FrameLossRate: 0.25, metric.Retransmits: 7,
		}
	}
	samples, err := parse(string(render(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"cnibench_service_demand_seconds_per_transaction": 2.5e-6, "cnibench_goodput_bytes_per_second": 1e9,
		"cnibench_transaction_rate_per_second": 40, "cnibench_rtt_seconds 0.99": 1e-3, "cnibench_rtt_seconds 0.999": 3,
		"cnibench_retransmits_per_byte": 4e-9, "cnibench_memory_bytes": 4096, "cnibench_frame_loss_rate_ratio": 0.25, "cnibench_retransmits": 7,
	} {
		i := slices.IndexFunc(samples, func(s sample) bool {
			return strings.TrimSpace(s.name+" "+s.labels["quantile"]) == name && s.labels["profile"] == "calico-vxlan"
		})
		if i < 0 {
			t.Errorf("no %s", name)
			continue
		}
		s := samples[i]
		if math.Abs(s.value-want) > 1e-12*want || s.labels["path"] != "pod-to-pod/cross-node" || s.labels["kind"] != "rr" {
			t.Errorf("%s: %v %v, want %v", name, s.value, s.labels, want)
		}
	}
	for _, s := range samples {
		if strings.Contains(s.name, "_lower_bound_") && s.name != ratioLow.name {
			t.Errorf("one value has no interval: %+v", s)
		}
	}
}

// Names of a stranger that differ in what is not printable alone must not become one series twice.
func TestNoSeriesTwice(t *testing.T) {
	r := reporttest.Small(4)
	for i := range r.Records {
		if r.Records[i].Profile == plan.VariantOf("calico-vxlan") {
			r.Records[i].Profile = plan.VariantOf("x" + string(rune(1+i%2)))
		}
	}
	if _, err := parse(string(render(t, r))); err != nil {
		t.Error(err)
	}
}

// What promtool of Prometheus makes a block of, Prometheus reads.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing (Debian: prometheus)")
	}
	for name, r := range map[string]reporttest.Result{"hostile": reporttest.Cases["hostile"], "nine-paths": reporttest.NinePaths(5)} {
		dir := t.TempDir()
		file := filepath.Join(dir, "in.txt")
		text := render(t, r)
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(dir, "db")).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		samples, err := parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), fmt.Sprintf(" %d ", len(samples))) {
			t.Errorf("%s: %d samples went in:\n%s", name, len(samples), out)
		}
	}
}

// A file that does not say when it was made has no times; then the reader's clock counts.
func TestNoTime(t *testing.T) {
	r := reporttest.Small(4)
	r.Header.Created = time.Time{}
	samples, err := parse(string(render(t, r)))
	if err != nil || len(samples) == 0 {
		t.Fatal(len(samples), err)
	}
	for _, s := range samples {
		if s.time != "" {
			t.Errorf("%+v", s)
		}
	}
}

var usedName = regexp.MustCompile(`cnibench_[a-z0-9_]+`)

// The dashboard asks for what there is.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../../contrib/grafana/cnibench.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := allNames()
	var asked []string
	for _, p := range dashboard.Panels {
		if p.Type != "row" && p.Type != "text" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			asked = append(asked, target.Expr)
		}
	}
	known := map[string]bool{"$__range": true, "$__interval": true}
	for _, v := range dashboard.Templating.List {
		known["$"+v.Name] = true
		if v.Type == "query" {
			asked = append(asked, v.Definition)
		}
	}
	for _, expr := range asked {
		used := usedName.FindAllString(expr, -1)
		if len(used) == 0 {
			t.Errorf("%q names no metric", expr)
		}
		for _, n := range used {
			if !slices.Contains(names, n) {
				t.Errorf("%q: there is no %s", expr, n)
			}
		}
		for _, v := range regexp.MustCompile(`\$\w+`).FindAllString(expr, -1) {
			if !known[v] {
				t.Errorf("%q: there is no variable %s", expr, v)
			}
		}
	}
	if dashboard.UID == "" || len(dashboard.Panels) < 5 {
		t.Errorf("uid %q, %d panels", dashboard.UID, len(dashboard.Panels))
	}
}

// The names follow Prometheus' naming guide, by the rules of promtool check metrics.
func TestNamingGuide(t *testing.T) {
	text, err := every()
	if err != nil {
		t.Fatal(err)
	}
	// promlint reads Prometheus' own format, which has no type info: the suffix makes it one.
	text = regexp.MustCompile(`(?m)^# (TYPE|HELP) (\S+_(?:run|fact|profile)) `).ReplaceAllString(text, "# $1 ${2}_info ")
	text = strings.ReplaceAll(text, "_info info\n", "_info gauge\n")
	text = regexp.MustCompile(`(?m)^# UNIT .*\n`).ReplaceAllString(text, "")
	// One sample of a family is enough for its name, and promlint compares each with each.
	last := ""
	var few strings.Builder
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		if strings.HasPrefix(line, "#") || name != last {
			few.WriteString(line)
		}
		last = name
	}
	text = few.String()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if bad, _ := promlint.New(strings.NewReader("# TYPE x_milliseconds_total gauge\nx_milliseconds_total 1\n")).Lint(); len(bad) == 0 {
		t.Error("the rules find nothing")
	}
}
