package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/cnibench/cnibench/internal/env/image/imagetest"
)

const testVersion = "v9.8.7-test"

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func binary(t *testing.T, arch string) Binary {
	t.Helper()
	b, err := ParseBinary("linux/" + arch + "=" + imagetest.Cnibench(arch, testVersion).File(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mustBuild makes an image of the architectures under the default name.
func mustBuild(t *testing.T, architectures ...string) *Image {
	t.Helper()
	s := Spec{Name: DefaultName(testVersion), Version: testVersion}
	for _, arch := range architectures {
		s.Binaries = append(s.Binaries, binary(t, arch))
	}
	i, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func archived(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack writes an archive into a new directory.
func unpack(t *testing.T, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	r := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(b))
	}
}

func TestSameBinarySameBytes(t *testing.T) {
	for _, arch := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		first, second := mustBuild(t, arch...), mustBuild(t, arch...)
		if first.Digest() != second.Digest() {
			t.Errorf("%v: digests %s and %s", arch, first.Digest(), second.Digest())
		}
		if !bytes.Equal(archived(t, first.WriteOCI), archived(t, second.WriteOCI)) {
			t.Errorf("%v: the archives differ", arch)
		}
	}
	one, other := mustBuild(t, "amd64", "arm64"), mustBuild(t, "arm64", "amd64")
	if one.Digest() != other.Digest() {
		t.Error("the order of the platforms changes the digest")
	}
	if mustBuild(t, "amd64").Digest() == mustBuild(t, "arm64").Digest() {
		t.Error("another binary has the same digest")
	}
}

func TestArchiveIsAValidLayout(t *testing.T) {
	for _, arch := range [][]string{{"amd64"}, {"amd64", "arm64"}} {
		i := mustBuild(t, arch...)
		dir := unpack(t, archived(t, i.WriteOCI))
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%v: %v", arch, err)
		}
		m, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Manifests) != 1 {
			t.Fatalf("%v: index.json has %d descriptors, want 1", arch, len(m.Manifests))
		}
		d := m.Manifests[0]
		if d.Digest.String() != i.Digest() {
			t.Errorf("%v: index.json has %s, the image %s", arch, d.Digest, i.Digest())
		}
		if d.Annotations["io.containerd.image.name"] != "cnibench.local/cnibench:"+testVersion ||
			d.Annotations["org.opencontainers.image.ref.name"] != testVersion {
			t.Errorf("%v: annotations %v", arch, d.Annotations)
		}
	}
}

// TestContents takes the image apart as a runtime would.
func TestContents(t *testing.T) {
	i := mustBuild(t, "arm64")
	img := i.single[0].image
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("platform %s/%s", config.OS, config.Architecture)
	}
	c := config.Config
	if c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/cnibench" || strings.Join(c.Cmd, " ") != "hold" {
		t.Errorf("config %+v", c)
	}
	if c.Labels["org.opencontainers.image.version"] != testVersion || c.Labels["org.opencontainers.image.title"] != "cnibench" ||
		!strings.HasPrefix(c.Labels["org.opencontainers.image.source"], "https://") {
		t.Errorf("labels %v", c.Labels)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v; want 1", len(layers), err)
	}
	packed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(unzipped)
	h, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != "cnibench" || h.Mode != 0o755 || h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
		t.Errorf("header %+v", h)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(imagetest.Cnibench("arm64", testVersion).File(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the program in the image is not the one that was given")
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("there is more in the layer: %v", err)
	}
}

func TestIndexNamesEachPlatform(t *testing.T) {
	i := mustBuild(t, "arm64", "amd64")
	m, err := i.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range m.Manifests {
		platforms = append(platforms, d.Platform.String())
		img, err := i.index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != d.Platform.Architecture {
			t.Errorf("%s holds an image for %s", d.Platform, config.Architecture)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("platforms %s", got)
	}
	only, err := i.Only("linux/arm64")
	if err != nil {
		t.Fatal(err)
	}
	if only.Digest() != mustBuild(t, "arm64").Digest() {
		t.Error("one platform of several is another image than that platform alone")
	}
	if _, err := i.Only("linux/s390x"); err == nil || !strings.Contains(err.Error(), "linux/amd64, linux/arm64") {
		t.Errorf("a platform that is not there: %v", err)
	}
}

// TestDockerFindsTheSameImage reads both kinds of archive as docker load does.
func TestDockerFindsTheSameImage(t *testing.T) {
	i := mustBuild(t, "amd64")
	for kind, content := range map[string][]byte{"oci": archived(t, i.WriteOCI), "docker": archived(t, i.WriteDocker)} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		m, err := tarball.LoadManifest(open)
		if err != nil {
			t.Fatal(err)
		}
		if len(m) != 1 || len(m[0].RepoTags) != 1 || m[0].RepoTags[0] != i.Name().String() {
			t.Fatalf("%s: manifest.json %+v", kind, m)
		}
		img, err := tarball.Image(open, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if got, want := configName(t, img), configName(t, i.single[0].image); got != want {
			t.Errorf("%s: image ID %s, want %s", kind, got, want)
		}
	}
	several := mustBuild(t, "amd64", "arm64")
	if err := several.WriteDocker(io.Discard); err == nil || !strings.Contains(err.Error(), "one platform") {
		t.Errorf("a docker archive of two platforms: %v", err)
	}
	if _, err := os.Stat(filepath.Join(unpack(t, archived(t, several.WriteOCI)), "manifest.json")); err == nil {
		t.Error("an archive of two platforms has a manifest.json, which can name only one")
	}
}

func configName(t *testing.T, img v1.Image) string {
	t.Helper()
	h, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

// TestWriteFails wants every failing write to be told.
func TestWriteFails(t *testing.T) {
	i := mustBuild(t, "amd64")
	whole := len(archived(t, i.WriteOCI))
	for _, room := range []int{0, 100, 600, 2000, whole / 2, whole - 1} {
		if err := i.WriteOCI(&limited{room}); err == nil {
			t.Errorf("no error with room for %d of %d bytes", room, whole)
		}
	}
	if err := i.WriteOCI(&limited{whole}); err != nil {
		t.Error(err)
	}
}

// limited is a full disk after so many bytes.
type limited struct{ room int }

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.room {
		return 0, os.ErrDeadlineExceeded
	}
	l.room -= len(b)
	return len(b), nil
}

func TestReference(t *testing.T) {
	i := mustBuild(t, "amd64")
	if want := "cnibench.local/cnibench:" + testVersion + "@" + i.Digest(); i.Reference() != want {
		t.Errorf("reference %s, want %s", i.Reference(), want)
	}
	var m struct{ Manifests []struct{ Digest string } }
	b, err := i.layoutIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Manifests[0].Digest != i.Digest() {
		t.Errorf("%v %+v", err, m)
	}
}
