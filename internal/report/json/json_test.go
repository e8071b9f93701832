package json

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

func render(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	return reporttest.Render(t, r, Render)
}

func TestGolden(t *testing.T) {
	for name, r := range reporttest.Cases {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".json", render(t, r)) })
	}
}

// The contract, read the way a program would: these keys, these types, in every cell and comparison.
func TestContract(t *testing.T) {
	nine := reporttest.NinePaths(5)
	for name, r := range map[string]reporttest.Result{"nine-paths": nine, "small": reporttest.Cases["small"], "all-failed": reporttest.Cases["all-failed"], "not-numbers": reporttest.Cases["not-numbers"]} {
		var doc struct {
			Schema      string
			Facts       map[string]string
			Cells       []map[string]any
			Comparisons []map[string]any
		}
		out := render(t, r)
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if doc.Schema != "cnibench.report/v1" || doc.Facts == nil || len(doc.Cells) == 0 {
			t.Errorf("%s: schema %q, facts %v, %d cells", name, doc.Schema, doc.Facts, len(doc.Cells))
		}
		cell := map[string]string{
			"profile": "string", "path": "string", "workload": "string", "metric": "string", "unit": "string", "n": "number",
			"median": "null", "low": "null", "high": "null", "confidence": "number", "samples": "array", "warnings": "array", "failed": "number",
			"instances": "number",
		}
		for _, c := range doc.Cells {
			hasKeys(t, name+": cell", c, cell)
			if bulk := strings.HasPrefix(c["workload"].(string), "stream"); bulk != (c["nic"] == "ideal") {
				t.Errorf("%s: %s has NIC model %v", name, c["workload"], c["nic"])
			}
			delete(c, "nic")
			if len(c) != len(cell) {
				t.Errorf("%s: a cell has %d keys, the contract %d", name, len(c), len(cell))
			}
			if n := int(c["n"].(float64)); n != len(c["samples"].([]any)) || (n == 0) != (c["median"] == nil) {
				t.Errorf("%s: n, samples and median disagree: %v", name, c)
			}
		}
		for _, c := range doc.Comparisons {
			hasKeys(t, name+": comparison", c, map[string]string{
				"profile": "string", "baseline": "string", "path": "string", "workload": "string", "metric": "string",
				"ratio": "null", "low": "null", "high": "null", "p": "number", "verdict": "string",
			})
			if v := c["verdict"]; !slices.Contains([]any{"better", "worse", "same", "inconclusive", ""}, v) {
				t.Errorf("%s: verdict %v", name, v)
			}
		}
		if again := render(t, r); !bytes.Equal(out, again) {
			t.Errorf("%s: two renderings differ", name)
		}
	}
}

// hasKeys checks that got has every key of want with its type; "null" is a number or null.
func hasKeys(t *testing.T, what string, got map[string]any, want map[string]string) {
	t.Helper()
	for k, typ := range want {
		v, ok := got[k]
		kind := "null"
		if v != nil {
			kind = map[reflect.Kind]string{reflect.String: "string", reflect.Float64: "number", reflect.Slice: "array", reflect.Map: "object"}[reflect.TypeOf(v).Kind()]
		}
		if !ok || kind != typ && !(typ == "null" && kind == "number") {
			t.Errorf("%s: %s is %s (%v), want %s", what, k, kind, v, typ)
		}
	}
}

// The twin says what instances differ by and is not a profile.
func TestTwinIsNoProfile(t *testing.T) {
	out := render(t, reporttest.NinePaths(5))
	if bytes.Contains(out, []byte(`{"profile":"raw~twin"`)) {
		t.Error("the twin has cells")
	}
	if !bytes.Contains(out, []byte(`"measured":true`)) {
		t.Error("the twin was not compared")
	}
}

// Numbers that are not finite are null, and lists are never null.
func TestEncode(t *testing.T) {
	type part struct {
		V []float64 `json:"v"`
	}
	for want, v := range map[string]any{
		`{"v":[1.5,null,null,null,0]}`: part{[]float64{1.5, math.NaN(), math.Inf(1), math.Inf(-1), 0}}, `{"v":[]}`: part{},
		`["a<b",3,null]`: []any{"a<b", 3, nil}, `"pod-to-pod/cross-node"`: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode},
	} {
		var b bytes.Buffer
		if err := encodeValue(&b, reflect.ValueOf(v)); err != nil || b.String() != want {
			t.Errorf("%v: got %s, %v, want %s", v, b.String(), err, want)
		}
	}
}

func TestHostileTextIsJSON(t *testing.T) {
	out := render(t, reporttest.Cases["hostile"])
	if strings.ContainsRune(string(out), '\x1b') || !json.Valid(out) {
		t.Error("raw control characters, or no JSON")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := Render(full{}, report.Document{}); err == nil {
		t.Error("a write error is lost")
	}
}

// Whatever a result holds, what comes out is JSON without an infinity in it, and never a panic.
func FuzzRender(f *testing.F) {
	f.Add(uint8(5), []byte{1, 2, 3, 0, 255, 254}, "calico-vxlan")
	f.Add(uint8(0), []byte{}, "")
	f.Add(uint8(9), []byte{255, 253, 252}, "raw~twin")
	f.Fuzz(func(t *testing.T, repetitions uint8, values []byte, name string) {
		r := reporttest.Small(int(repetitions % 12))
		for i := range r.Records {
			if len(values) == 0 {
				break
			}
			switch v := values[i%len(values)]; v {
			case 255:
				r.Records[i].Metrics["service_demand"] = math.NaN()
			case 254:
				r.Records[i].Status = "failed"
			case 253:
				r.Records[i].Profile = plan.VariantOf(name)
			case 252:
				r.Records[i].Metrics["rtt.p50"] = math.MaxFloat64
			case 251:
				r.Records[i].Metrics["rtt.p50"] = math.SmallestNonzeroFloat64
			default:
				r.Records[i].Metrics["service_demand"] = float64(v) - 100
			}
		}
		if out := render(t, r); !json.Valid(out) || bytes.Contains(out, []byte("NaN")) {
			t.Fatalf("%s", out)
		}
	})
}
