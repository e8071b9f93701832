// Package image makes the container image of cnibench: from scratch, with this binary, and optionally programs of this
// machine with the libraries that they need.
//
//	Binary per platform ──► Build ──► Image ──► WriteOCI, WriteDocker   an archive, for clusters without a registry
//	                                        ├─► Load                    containerd, Docker, kind on this machine
//	                                        └─► Push                    a registry
//
// The same binaries give the same digest on every machine: times, owners and order are fixed. A binary that would not
// start in an empty root, or that its controller would refuse, is refused here, where the reason can be reported.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// The contents of the image, and how its containers start. The user has no name and no rights, as the restricted
// pod security standard requires.
const (
	program   = "/cnibench"
	imageUser = "65532:65532"
	// idle is the subcommand that a pod runs while it waits for commands by exec.
	idle = "hold"
)

const (
	title  = "cnibench"
	source = "https://github.com/cnibench/cnibench"
)

// epoch is the timestamp of all files and of the image itself, so that equal inputs give equal digests.
var epoch = v1.Time{Time: time.Unix(0, 0).UTC()}

// Spec describes the image to build.
type Spec struct {
	// Name is the reference of the image; DefaultName returns one.
	Name Name
	// Version is the version of cnibench that every binary must have.
	Version string
	// Binaries are one or more builds of cnibench, each for a different platform.
	Binaries []Binary
	// Tools are the names of load generators to include, Programs the paths of their files on this machine. An image
	// with tools has one platform. (optional)
	Tools, Programs []string
}

// Image is a built image: the image of one platform, or an index of the images of several platforms.
type Image struct {
	name   Name
	single []platformImage // by platform
	index  v1.ImageIndex   // nil with one platform
	digest v1.Hash
}

// platformImage is the image of one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// Build builds the image. The error lists every fault of the binaries and programs.
func Build(s Spec) (*Image, error) {
	if len(s.Binaries) == 0 {
		return nil, errors.New("no binary to make an image of")
	}
	if len(s.Programs) > 0 && len(s.Binaries) > 1 {
		return nil, advice.With(errors.New("an image with tools has one platform, that of the tools"), "leave out --platform, or --with")
	}
	labels := baseLabels(s.Version)
	if len(s.Tools) > 0 {
		labels[labelTools] = strings.Join(s.Tools, ",")
	}
	i := &Image{name: s.Name}
	var errs []error
	seen := map[string]string{}
	for _, b := range s.Binaries {
		platform := b.Platform.String()
		if other, twice := seen[platform]; twice {
			errs = append(errs, fmt.Errorf("platform %s is given twice: %s and %s", platform, other, b.File))
			continue
		}
		seen[platform] = b.File
		content, err := b.verifiedContent(s.Version)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tools, err := packPrograms(s.Programs, machines[b.Platform.Architecture])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		image, err := buildPlatformImage(b.Platform, append([]packed{{strings.TrimPrefix(program, "/"), content}}, tools...), labels)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		i.single = append(i.single, platformImage{b.Platform, image})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(i.single, func(a, b platformImage) int {
		return strings.Compare(a.platform.String(), b.platform.String())
	})
	return i, i.setDigest(labels)
}

// setDigest builds the index if the image has several platforms, and sets the image's digest.
func (i *Image) setDigest(labels map[string]string) (err error) {
	if len(i.single) == 1 {
		i.digest, err = i.single[0].image.Digest()
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range i.single {
		platform := p.platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: p.image, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &platform},
		})
	}
	i.index = mutate.Annotations(index, labels).(v1.ImageIndex)
	i.digest, err = i.index.Digest()
	return err
}

// buildPlatformImage returns the image of one platform, with files and labels.
func buildPlatformImage(platform v1.Platform, files []packed, labels map[string]string) (v1.Image, error) {
	l, err := newLayer(files)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: platform.Architecture, OS: platform.OS, Variant: platform.Variant, Created: epoch,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config: v1.Config{
			User: imageUser, Entrypoint: []string{program}, Cmd: []string{idle}, WorkingDir: "/", Env: []string{"PATH=/"}, Labels: labels,
		},
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(base, mutate.Addendum{Layer: l, History: v1.History{Created: epoch, CreatedBy: "cnibench image"}})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, labels).(v1.Image), nil
}

func baseLabels(version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":   title,
		"org.opencontainers.image.source":  source,
		"org.opencontainers.image.version": version,
	}
}

// Name returns the reference of the image, without its digest.
func (i *Image) Name() Name { return i.name }

// Digest returns the digest of the image's manifest, or for several platforms of its index.
func (i *Image) Digest() string { return i.digest.String() }

// Reference returns name and digest, which identify exactly these bytes.
func (i *Image) Reference() string { return i.name.String() + "@" + i.Digest() }

// Platforms returns the image's platforms, sorted.
func (i *Image) Platforms() []string {
	list := make([]string, len(i.single))
	for k, p := range i.single {
		list[k] = p.platform.String()
	}
	return list
}

// Only returns the part of the image for one platform, under the same name. It fails if the image lacks the platform.
func (i *Image) Only(platform string) (*Image, error) {
	for _, p := range i.single {
		if p.platform.String() == platform {
			digest, err := p.image.Digest()
			return &Image{name: i.name, single: []platformImage{p}, digest: digest}, err
		}
	}
	return nil, fmt.Errorf("the image is not for %s, but for %s", platform, strings.Join(i.Platforms(), ", "))
}

// newLayer packs files into the only layer of an image. The layer keeps its compressed form for further archives
// and pushes. An image with more than one file has tools. They may write files, so the layer has a writable /tmp.
func newLayer(files []packed) (v1.Layer, error) {
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	members := each.Of(files, func(f packed) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o755, Size: int64(len(f.content))}
	})
	if len(files) > 1 {
		members = append(members, tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777})
	}
	for i, h := range members {
		h.ModTime, h.Format = epoch.Time, tar.FormatUSTAR
		if err := archive.WriteHeader(&h); err != nil {
			return nil, err
		}
		if i < len(files) {
			if _, err := archive.Write(files[i].content); err != nil {
				return nil, err
			}
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.DefaultCompression))
}
