package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/internal/env/image/imagetest"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func TestParseBinary(t *testing.T) {
	for text, want := range map[string]Binary{
		"linux/amd64=a":        {v1.Platform{OS: "linux", Architecture: "amd64"}, "a"},
		"linux/arm64=b=c":      {v1.Platform{OS: "linux", Architecture: "arm64"}, "b=c"},
		"linux/arm64/v8=d":     {v1.Platform{OS: "linux", Architecture: "arm64"}, "d"},
		"linux/arm/v7=/x/y z ": {v1.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}, "/x/y z "},
	} {
		got, err := ParseBinary(text)
		if err != nil || got.File != want.File || !got.Platform.Equals(want.Platform) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                      "names no binary",
		"linux/amd64":           "write linux/amd64=FILE",
		"linux/amd64=":          "names no binary",
		"darwin/arm64=a":        "write linux/ and an architecture",
		"linux=a":               "write linux/ and an architecture",
		"linux/amd64/v1/x=a":    "write linux/ and an architecture",
		"linux/vax=a":           "no such architecture; known are amd64",
		"linux/amd64:10.0=file": "write linux/ and an architecture",
	} {
		if _, err := ParseBinary(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRefusals gives Build what must not become an image.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	write(t, text, "#!/bin/sh\n")
	amd64 := imagetest.Cnibench("amd64", testVersion).File(t)
	// A program that was cut short has lost the ELF sections that follow its build information, or all of it.
	content, err := os.ReadFile(amd64)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut")
	write(t, cut, string(content[:len(content)/100]))
	// Only its build information is that of another system, whose library is not compiled for this test.
	otherSystem := filepath.Join(dir, "plan9")
	write(t, otherSystem, strings.ReplaceAll(string(content), "GOOS=linux", "GOOS=plan9"))
	for name, c := range map[string]struct{ platform, file, want, advice string }{
		"missing":       {"linux/amd64", filepath.Join(dir, "none"), "no such file", ""},
		"directory":     {"linux/amd64", dir, "is a directory", ""},
		"text":          {"linux/amd64", text, "is not a Go program", "make build"},
		"cut short":     {"linux/amd64", cut, "is not a Go program", "make build"},
		"another":       {"linux/amd64", imagetest.Program{Module: "example.org/other", OS: "linux", Arch: "amd64", Version: testVersion}.File(t), "is not cnibench, but example.org/other", ""},
		"architecture":  {"linux/arm64", amd64, "is built for linux/amd64, not for linux/arm64", "GOARCH=arm64"},
		"system":        {"linux/amd64", otherSystem, "is built for plan9/amd64, not for linux/amd64", "GOOS=linux"},
		"version":       {"linux/amd64", imagetest.Cnibench("amd64", "v9.8.6").File(t), "is not of this version of cnibench, " + testVersion, "same commit"},
		"wrong machine": {"linux/amd64", altered(t, amd64, 18, 0xb7), "is for EM_AARCH64, not for linux/amd64", "GOARCH=amd64"},
	} {
		b, err := ParseBinary(c.platform + "=" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Build(Spec{Name: DefaultName(testVersion), Version: testVersion, Binaries: []Binary{b}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if !strings.Contains(advice.Of(err), c.advice) {
			t.Errorf("%s: hint %q, want %q", name, advice.Of(err), c.advice)
		}
	}
}

// altered is a copy of a file with one byte changed.
func altered(t *testing.T, file string, offset int, value byte) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[offset] = value
	name := filepath.Join(t.TempDir(), "altered")
	write(t, name, string(content))
	return name
}

// TestDynamicProgramsAreRefused turns a program header into that of a loader, which is what cgo would have left.
func TestDynamicProgramsAreRefused(t *testing.T) {
	const headers, kind, loader = 64, 0, 3 // of a 64-bit ELF file: where program headers begin, p_type, PT_INTERP
	file := altered(t, imagetest.Cnibench("amd64", testVersion).File(t), headers+kind, loader)
	b, err := ParseBinary("linux/amd64=" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Build(Spec{Name: DefaultName(testVersion), Version: testVersion, Binaries: []Binary{b}})
	if err == nil || !strings.Contains(err.Error(), "is linked dynamically") || !strings.Contains(advice.Of(err), "CGO_ENABLED=0") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
}

// TestAllFaultsAtOnce wants the second fault to be named with the first.
func TestAllFaultsAtOnce(t *testing.T) {
	good := binary(t, "amd64")
	missing := Binary{v1.Platform{OS: "linux", Architecture: "arm64"}, "none-arm64"}
	absent := Binary{v1.Platform{OS: "linux", Architecture: "s390x"}, "none-s390x"}
	_, err := Build(Spec{Name: DefaultName(testVersion), Version: testVersion, Binaries: []Binary{good, missing, absent, good}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"none-arm64", "none-s390x", "linux/amd64 is given twice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
	if _, err := Build(Spec{}); err == nil {
		t.Error("an image of nothing was made")
	}
}

// TestUnknownVersionsPass: a cnibench that does not know its own version compares nothing.
func TestUnknownVersionsPass(t *testing.T) {
	for _, version := range []string{"", "unknown"} {
		s := Spec{Name: DefaultName(version), Version: version, Binaries: []Binary{binary(t, "amd64")}}
		if _, err := Build(s); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// FuzzBinary reads arbitrary bytes as a program: refused or not, never a crash.
func FuzzBinary(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("\xff Go buildinf:\x08\x02"))
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "program")
		write(t, file, string(content))
		b := Binary{v1.Platform{OS: "linux", Architecture: "amd64"}, file}
		if _, err := b.verifiedContent("v1"); err == nil && len(content) < 1000 {
			t.Errorf("%q passes for cnibench", content)
		}
	})
}
