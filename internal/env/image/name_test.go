package image

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

func TestTag(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.0":                 "v1.2.0",
		"v1.2.0-3-gabc123-dirty": "v1.2.0-3-gabc123-dirty",
		"v1.2.0+dirty":           "v1.2.0-dirty",
		"":                       "unknown",
		"...":                    "unknown",
		"(devel)":                "devel-",
		"a/b c":                  "a-b-c",
		strings.Repeat("x", 200): strings.Repeat("x", 128),
	} {
		if got := tagOf(version); got != want {
			t.Errorf("Tag(%q) = %q, want %q", version, got, want)
		}
	}
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]string{
		"registry.example/team/cnibench:v2":    "registry.example/team/cnibench:v2",
		"registry.example/team/cnibench":       "registry.example/team/cnibench:v1",
		"registry.example:5000/cnibench":       "registry.example:5000/cnibench:v1",
		"team/cnibench":                        "docker.io/team/cnibench:v1",
		"cnibench":                             "docker.io/library/cnibench:v1",
		"localhost:5000/cnibench:a_b":          "localhost:5000/cnibench:a_b",
		"docker.io/team/cnibench":              "docker.io/team/cnibench:v1",
		DefaultName("v3").String():             "cnibench.local/cnibench:v3",
		"[::1]:5000/cnibench:v2":               "[::1]:5000/cnibench:v2",
		"index.docker.io/library/cnibench:v12": "docker.io/library/cnibench:v12",
	} {
		got, err := ParseName(text, "v1")
		if err != nil || got.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                "must be specified",
		"Team/Cnibench":                   "can only contain",
		"a/b:latest":                      "the tag latest does not say",
		"a/b@sha256:0123":                 "has a digest",
		"a/b:" + strings.Repeat("x", 129): "tag",
		"https://registry.example/a":      "is not a repository path",
	} {
		if n, err := ParseName(text, "v1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %q", text, n, err, want)
		}
	}
}

// FuzzName: what is accepted can be written, read again as the same, and used as a reference; every version makes a tag.
func FuzzName(f *testing.F) {
	for _, s := range []string{"a/b:c", "localhost:5000/x", "docker.io/x", "A", "a@sha256:", "v1+x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := name.NewTag(DefaultName(s).String(), name.StrictValidation); err != nil {
			t.Errorf("version %q: %v", s, err)
		}
		n, err := ParseName(s, "v1")
		if err != nil {
			return
		}
		again, err := ParseName(n.String(), "v2")
		if err != nil || again != n {
			t.Errorf("%q becomes %s, and that %s, %v", s, n, again, err)
		}
	})
}

func TestDefaultName(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0": "ghcr.io/cnibench/cnibench:0.1.0", "v0.1.0": "ghcr.io/cnibench/cnibench:0.1.0", "v1.2.3-rc.1": "ghcr.io/cnibench/cnibench:1.2.3-rc.1",
		"v0.1.0-3-gabcdef0": "cnibench.local/cnibench:v0.1.0-3-gabcdef0", "v0.1.1-0.20261124081200-2af99f6cbbaa": "cnibench.local/cnibench:v0.1.1-0.20261124081200-2af99f6cbbaa",
		"0.1.1-SNAPSHOT-2af99f6": "cnibench.local/cnibench:0.1.1-SNAPSHOT-2af99f6", "v0.1.0-dirty": "cnibench.local/cnibench:v0.1.0-dirty",
		"v0.1.0+dirty": "cnibench.local/cnibench:v0.1.0-dirty", "unknown": "cnibench.local/cnibench:unknown",
	} {
		if got := DefaultName(version).String(); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
