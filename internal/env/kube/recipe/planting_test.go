package recipe

import (
	"os"
	"strings"
	"testing"
)

func TestPlantAndRemove(t *testing.T) {
	dir := t.TempDir()
	s, err := ParsePlant([]byte(`{"file": "10-x.conflist", "text": "{\"name\": \"x\"}", "routes": [{"to": "10.244.1.0/24", "via": "192.0.2.2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "10-x.conflist" {
		t.Fatalf("%v, %v", entries, err)
	}
	got, err := os.ReadFile(dir + "/10-x.conflist")
	if err != nil || string(got) != s.Text {
		t.Errorf("%q, %v", got, err)
	}
	for range 2 { // what is gone already is as it should be
		if err := s.Remove(dir); err != nil {
			t.Error(err)
		}
	}
	if entries, _ = os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
	if err := s.Write(dir + "/none"); err == nil {
		t.Error("a directory that is not there was written into")
	}
}

func TestParsePlantRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                   "CNI configuration of the node",
		`{"file": "../x", "text": "{}"}`:      "is not a file name",
		`{"file": "", "text": "{}"}`:          "is not a file name",
		`{"file": ".hidden", "text": "{}"}`:   "is not a file name",
		`{"file": "x.conflist", "text": "{"}`: "is not JSON",
		`{"file": "x.conflist", "text": "{}", "routes": [{"to": "10.0.0.0/8"}]}`: "next hop",
	} {
		if _, err := ParsePlant([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParsePlant(f *testing.F) {
	f.Add([]byte(`{"file": "x.conflist", "text": "{}", "routes": [{"to": "10.0.0.0/8", "via": "192.0.2.1"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParsePlant(text)
		if err == nil && (s.File == "" || strings.Contains(s.File, "/")) {
			t.Errorf("%q is taken for a file", s.File)
		}
	})
}
