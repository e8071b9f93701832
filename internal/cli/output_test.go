package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestSeriesOf(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	for name, want := range map[string]string{
		"/r/{time}.jsonl": "/r/20260304T040607Z.jsonl", "{time}": "20260304T040607Z", "a/x-{time}-y.jsonl": "a/x-20260304T040607Z-y.jsonl",
	} {
		s, ok, err := parseSeries(name)
		if !ok || err != nil || s.nameAt(at) != want {
			t.Errorf("%s: %q, %v, %v; want %q", name, s.nameAt(at), ok, err, want)
		}
		if !s.matchesName(filepath.Base(want)) {
			t.Errorf("%s does not know its own %s", name, want)
		}
	}
	for _, plain := range []string{"result.jsonl", "time", "{TIME}.jsonl", "{tim}e}"} {
		if _, ok, err := parseSeries(plain); ok || err != nil {
			t.Errorf("%s: %v, %v", plain, ok, err)
		}
	}
	for _, bad := range []string{"{time}/r.jsonl", "{time}{time}", "a/{time}-{time}.jsonl", "{time}/{time}"} {
		if _, _, err := parseSeries(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// Only what a run of the same name has made is ever removed, and the newest stay.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	strangers := []string{
		"a-20260101T000000Z.jsonl.old", "b-20260101T000000Z.jsonl", "a-.jsonl", "a-2026.jsonl", "a-20261301T000000Z.jsonl", "a-20260101T000000.5Z.jsonl",
		"a-20260101T000000Z.jsonl~", "xa-20260101T000000Z.jsonl", "a-20260101t000000Z.jsonl", "result.jsonl",
	}
	results := []string{"a-20260101T000000Z.jsonl", "a-20260102T000000Z.jsonl", "a-20260102T000001Z.jsonl", "a-20270101T000000Z.jsonl"}
	for _, n := range slices.Concat(strangers, results) {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"a-20250101T000000Z.jsonl"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, d)
	}
	s, _, err := parseSeries(filepath.Join(dir, "a-{time}.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []int{9, 4, 2, 1} {
		if err := s.prune(keep); err != nil {
			t.Fatal(err)
		}
		var got []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Name())
		}
		want := slices.Concat(strangers, results[max(0, len(results)-keep):])
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("keep %d: %q, want %q", keep, got, want)
		}
	}
}
