package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"sigs.k8s.io/yaml"
)

// resolved returns the validator of a format, from the text that is published.
func resolved(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, name); err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func validate(t *testing.T, r *jsonschema.Resolved, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return r.Validate(v)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnknownFormat(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "plans"); err == nil {
		t.Error("an unknown format has a schema")
	}
}

func TestExamplesHaveThePlanSchema(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	r := resolved(t, "plan")
	for _, file := range files {
		text := read(t, file)
		if err := validate(t, r, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if first, _, _ := strings.Cut(string(text), "\n"); first != "# yaml-language-server: $schema=../docs/schema/plan.json" {
			t.Errorf("%s does not name its schema in the first line", file)
		}
	}
}

func TestPlanSchema(t *testing.T) {
	r := resolved(t, "plan")
	const head = "apiVersion: cnibench/v1\nkind: Plan\n"
	for _, good := range []string{
		"duration: 1m30s", "duration: 0.5s", "budget: 0", "precision: 5%", "precision: 0.05", "lab: {lineRate: 1G, family: 6}",
		"lab: {lineRate: 1000000, loss: 0.5%, delay: 10ms}", "profiles: [raw, \"canal(services=10)\", detected, host@east]",
		"workloads: [rr, \"stream(udp,rate=1G)\", {rr: {requestSize: [64, 1Ki], load: \"10%..90%\"}}, {crr: }]",
		"workloads: [{stream: {protocol: udp, messageSize: imix, rate: [1G, 500M]}}]", "seed: 18446744073709551615",
		"kubernetes: {nodeSelector: {pool: net}, cpus: 2-3, ttl: 2h, install: true, tolerations: [\"*\"]}", "name: 12",
	} {
		if err := validate(t, r, []byte(head+good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"repetitions: 0", "repetitions: many", "duration: 10", "duration: soon", "budget: -1s", "precision: half", "repetition: 5",
		"environment: cloud", "lab: {nodes: 1}", "lab: {cpu: one split}", "lab: {nic: wires}", "lab: {family: 5}", "lab: {lineRate: fast}",
		"profiles: [calcio]", "profiles: raw", "paths: [pod-to-pod]", "workloads: [rrr]", "workloads: []",
		"workloads: [{rr: {flow: 8}}]", "workloads: [{rr: {flows: 0}}]", "workloads: [{rr: {}, crr: {}}]", "workloads: [{http: {protocol: udp}}]",
		"kubernetes: {install: maybe}", "kubernetes: {context: east}", "twin: 3", "seed: -1",
	} {
		if err := validate(t, r, []byte(head+bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if validate(t, r, []byte("kind: Plan")) == nil || validate(t, r, []byte("apiVersion: cnibench/v2\nkind: Plan")) == nil {
		t.Error("apiVersion is not required")
	}
}

func TestResultsHaveTheirSchema(t *testing.T) {
	r := resolved(t, "result")
	lines := bytes.Split(bytes.TrimSpace(read(t, "../../judge/check/testdata/lab.jsonl")), []byte("\n"))
	if len(lines) < 3 {
		t.Fatalf("the result has %d lines", len(lines))
	}
	for i, line := range lines {
		if err := validate(t, r, line); err != nil {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
	for _, bad := range []string{
		`{}`, `{"schema": "cnibench.result/v9"}`, strings.Replace(string(lines[1]), `"trial"`, `"attempt"`, 1),
		strings.Replace(string(lines[1]), `"repetition":`, `"repetition":"one","x":`, 1),
	} {
		if err := validate(t, r, []byte(bad)); err == nil {
			t.Errorf("accepted: %.80s", bad)
		}
	}
}

func TestReportsHaveTheirSchema(t *testing.T) {
	r := resolved(t, "report")
	files, err := filepath.Glob("../json/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if err := validate(t, r, read(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, bad := range []string{`{}`, strings.Replace(string(read(t, files[0])), `"cells":`, `"cell":`, 1)} {
		if err := validate(t, r, []byte(bad)); err == nil {
			t.Errorf("accepted: %.80s", bad)
		}
	}
}
