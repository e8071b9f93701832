package image

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// module is the import path of the command.
const module = "github.com/cnibench/cnibench"

// Binary is a build of cnibench for one platform.
type Binary struct {
	Platform v1.Platform
	File     string
}

// ParseBinary parses PLATFORM=FILE, such as linux/arm64=bin/cnibench-arm64. It fails unless the platform is Linux
// on a known architecture. It does not open the file.
func ParseBinary(s string) (Binary, error) {
	platform, file, ok := strings.Cut(s, "=")
	if !ok || file == "" {
		return Binary{}, fmt.Errorf("platform %q names no binary: write %s=FILE", s, platform)
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil || p.OS != "linux" || p.Architecture == "" || p.OSVersion != "" {
		return Binary{}, fmt.Errorf("unknown platform %q: write linux/ and an architecture, such as linux/arm64", platform)
	}
	if _, known := machines[p.Architecture]; !known {
		return Binary{}, fmt.Errorf("platform %q: no such architecture; known are %s", platform, architectures)
	}
	// Every arm64 is v8 at least, and tools differ in whether they write it.
	if p.Architecture == "arm64" && p.Variant == "v8" {
		p.Variant = ""
	}
	return Binary{*p, file}, nil
}

// machines maps Go's names of architectures to the machine numbers in ELF headers.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM, "386": elf.EM_386, "riscv64": elf.EM_RISCV,
	"ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390, "loong64": elf.EM_LOONGARCH,
}

const architectures = "amd64, arm64, arm, 386, riscv64, ppc64le, s390x, loong64"

// verifiedContent returns the contents of b's file. It fails unless the file is cnibench of the given version and
// of b's platform. It also fails if the program needs other files to start.
func (b Binary) verifiedContent(version string) ([]byte, error) {
	content, err := os.ReadFile(b.File)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, advice.With(fmt.Errorf("%s is not a Go program: %w", b.File, err), "name a cnibench that make build made")
	}
	if info.Path != module {
		return nil, fmt.Errorf("%s is not cnibench, but %s", b.File, info.Path)
	}
	if err := b.checkPlatform(content, info); err != nil {
		return nil, err
	}
	if !hasVersion(content, info, version) {
		return nil, advice.With(fmt.Errorf("%s is not of this version of cnibench, %s", b.File, version),
			"a controller and its agents must be of one version: build both from the same commit")
	}
	return content, nil
}

// checkPlatform fails unless content, the contents of b's file, is a static Linux program for b's platform.
func (b Binary) checkPlatform(content []byte, info *debug.BuildInfo) error {
	system, arch := buildSetting(info, "GOOS"), buildSetting(info, "GOARCH")
	command := fmt.Sprintf("CGO_ENABLED=0 GOOS=linux GOARCH=%s go build -o FILE %s", b.Platform.Architecture, module)
	if system != b.Platform.OS || arch != b.Platform.Architecture {
		return advice.With(fmt.Errorf("%s is built for %s/%s, not for %s", b.File, system, arch, b.Platform), command)
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return advice.With(fmt.Errorf("%s is not a Linux program: %w", b.File, err), command)
	}
	if f.Machine != machines[b.Platform.Architecture] {
		return advice.With(fmt.Errorf("%s is for %s, not for %s", b.File, f.Machine, b.Platform), command)
	}
	if err := checkStatic(f); err != nil {
		return advice.With(fmt.Errorf("%s %w, which is not in an image of one file", b.File, err), command)
	}
	return nil
}

// checkStatic returns an error if the program is linked dynamically, and so needs other files to start.
func checkStatic(f *elf.File) error {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("is linked dynamically: it needs a loader")
		}
	}
	libraries, err := f.ImportedLibraries()
	if err == nil && len(libraries) > 0 {
		return fmt.Errorf("is linked dynamically: it needs %s", strings.Join(libraries, ", "))
	}
	return nil
}

// hasVersion reports whether a program is of a version. It returns true for the versions "" and "unknown". A stripped
// program does not show where the linker put the version, so any occurrence in content counts. If a wrong version passes
// here, the run refuses the agent when it starts.
func hasVersion(content []byte, info *debug.BuildInfo, version string) bool {
	if version == "" || version == "unknown" || info.Main.Version == version || buildSetting(info, "vcs.revision") == version {
		return true
	}
	return bytes.Contains(content, []byte(version))
}

// buildSetting returns a build setting of the program, such as GOOS, or "".
func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
