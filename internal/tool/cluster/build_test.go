package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestGoMod(t *testing.T) {
	c := component{module: "example.org/a", version: "1.2.3", replace: []string{"example.org/b"}, replaceVersion: "0.2.3"}
	const want = "module e2e/build\n\ngo 1.26.0\n\nrequire example.org/a v1.2.3\n\nreplace (\n\texample.org/b => example.org/b v0.2.3\n)\n"
	if got := c.goMod(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	c = component{module: "example.org/a", version: "1.2.3", also: []string{"example.org/b v0.1.0"}, standIn: standIn{module: "example.org/c"}}
	const mended = "module e2e/build\n\ngo 1.26.0\n\nrequire example.org/a v1.2.3\nrequire example.org/b v0.1.0\n\nreplace example.org/c => ./standin\n"
	if got := c.goMod(); got != mended {
		t.Errorf("got:\n%s\nwant:\n%s", got, mended)
	}
	c = component{module: "example.org/a/v2", version: "2.0.1", fork: "example.com/a/v2"}
	const forked = "module e2e/build\n\ngo 1.26.0\n\nrequire example.org/a/v2 v2.0.1\n\nreplace example.org/a/v2 => example.com/a/v2 v2.0.1\n"
	if got := c.goMod(); got != forked {
		t.Errorf("got:\n%s\nwant:\n%s", got, forked)
	}
}

// TestProgramsOfComponents holds that whatever a node starts, some component or package builds.
func TestProgramsOfComponents(t *testing.T) {
	built := []string{"pause", "runc", "busybox"}
	for _, c := range components {
		for _, p := range c.programs() {
			if slices.Contains(built, p) {
				t.Errorf("%s is built twice", p)
			}
			built = append(built, p)
		}
	}
	need := slices.Concat([]string{"kubectl", "ctr", "containerd-shim-runc-v2", "kube-proxy", "flanneld", "kube-router",
		"cilium-agent", "cilium-cni", "cilium-dbg", "cilium-operator-generic"}, cniPlugins)
	for _, d := range daemons(node{ControlPlane: true}) {
		need = append(need, d.Name)
	}
	for _, n := range need {
		if !slices.Contains(built, n) {
			t.Errorf("nobody builds %s", n)
		}
	}
}

func TestCacheKeyFollowsTheVersions(t *testing.T) {
	if cacheKey("amd64") == cacheKey("arm64") || components[0].key("amd64") == components[0].key("arm64") {
		t.Error("two architectures share a cache")
	}
	before, parts := cacheKey("amd64"), map[string]bool{}
	for _, c := range components {
		parts[c.key("amd64")] = true
	}
	if len(parts) != len(components) {
		t.Errorf("%d components have %d directories", len(components), len(parts))
	}
	defer func(v string) { components[0].version = v }(components[0].version)
	components[0].version = "0.0.0"
	if cacheKey("amd64") == before {
		t.Error("another version has the same cache")
	}
	for i, c := range components {
		key := c.key("amd64")
		if kept := parts[key]; kept != (i > 0) {
			t.Errorf("with another version of %s alone, %s is the same: %v", components[0].name, c.name, kept)
		}
		if strings.ContainsAny(key, " '/") {
			t.Errorf("%q is no good name of a directory", key)
		}
	}
}

func TestWithoutImports(t *testing.T) {
	const text = "import (\n\t_ \"x/pkg/backend/udp\"\n\t_ \"x/pkg/backend/udp2\"\n\t_ \"x/pkg/backend/vxlan\"\n)\n"
	got := withoutImports(text, []string{"pkg/backend/udp"})
	if want := strings.Replace(text, "\t_ \"x/pkg/backend/udp\"\n", "", 1); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestLibraries(t *testing.T) {
	const ldd = "/usr/sbin/nft:\n\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => /lib/libc.so.6 (0x7e)\n/usr/lib/x.so:\n\tlibc.so.6 => /lib/libc.so.6 (0x7d)\n\t/lib64/ld.so.2 (0x7c)\n\tstatically linked\n"
	if got, want := libraries(ldd), []string{"/lib/libc.so.6", "/lib64/ld.so.2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestImage reads an archive back as a container runtime does.
func TestImage(t *testing.T) {
	spec := imageSpec{
		names: []string{"cnibench.local/x:1"}, entrypoint: []string{"/bin/x"}, arch: "arm64",
		files: map[string]imageFile{"/bin/x": {data: []byte("program")}, "/bin/y": {link: "x"}, "/usr/lib/z.so": {data: []byte("z")}},
	}
	var first, second bytes.Buffer
	if err := errors.Join(writeImage(&first, spec), writeImage(&second, spec)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("equal specs give different archives")
	}
	archive := untar(t, first.Bytes())
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(archive["manifest.json"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || !slices.Equal(manifest[0].RepoTags, spec.names) || len(manifest[0].Layers) != 1 {
		t.Fatalf("manifest %+v", manifest)
	}
	layer := untar(t, []byte(archive[manifest[0].Layers[0]]))
	for name, want := range map[string]string{"bin/": "", "bin/x": "program", "bin/y": "-> x", "usr/": "", "usr/lib/": "", "usr/lib/z.so": "z"} {
		if got, ok := layer[name]; !ok || got != want {
			t.Errorf("layer has %s = %q (%v), want %q", name, got, ok, want)
		}
	}
	if config := archive[manifest[0].Config]; !strings.Contains(config, `"architecture":"arm64"`) || !strings.Contains(config, `"Entrypoint":["/bin/x"]`) {
		t.Errorf("config %s", config)
	}
}

// untar returns contents by name, links as "-> target".
func untar(t *testing.T, data []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if found[h.Name] = string(text); h.Typeflag == tar.TypeSymlink {
			found[h.Name] = "-> " + h.Linkname
		}
	}
}
