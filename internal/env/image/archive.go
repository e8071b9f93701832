package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Annotations that name the image in an archive: containerd reads the first, skopeo and podman the second.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// WriteOCI writes the image to w as an OCI image layout in a tar archive. For an image of one platform it adds
// manifest.json. A Docker without containerd's image store finds the same blobs by this file.
func (i *Image) WriteOCI(w io.Writer) error {
	index, err := i.layoutIndex()
	if err != nil {
		return err
	}
	members := []member{fileMember("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), fileMember("index.json", index)}
	if i.index == nil {
		legacy, err := i.dockerManifest()
		if err != nil {
			return err
		}
		members = append(members, fileMember("manifest.json", legacy))
	}
	blobs, err := i.blobs()
	if err != nil {
		return err
	}
	return writeTar(w, append(append(members, member{name: "blobs/"}, member{name: "blobs/sha256/"}), blobs...))
}

// WriteDocker writes the image to w as an archive in the format of docker save. It fails for an image of several platforms.
func (i *Image) WriteDocker(w io.Writer) error {
	if i.index != nil {
		return advice.With(fmt.Errorf("a docker archive holds one platform, not %s", strings.Join(i.Platforms(), " and ")),
			"use --format oci, or make an archive for each")
	}
	tag, err := name.NewTag(i.name.String())
	if err != nil {
		return err
	}
	return tarball.Write(tag, i.single[0].image, w)
}

// layoutIndex returns the contents of index.json: one descriptor, annotated with the image's name. It describes the image's
// manifest, or for several platforms the image's index.
func (i *Image) layoutIndex() ([]byte, error) {
	d, err := partial.Descriptor(i.taggedObject())
	if err != nil {
		return nil, err
	}
	d.Annotations = map[string]string{annotationName: i.name.String(), annotationTag: i.name.tag}
	if i.index == nil {
		d.Platform = &i.single[0].platform
	}
	return json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{*d}})
}

// dockerManifest returns the contents of manifest.json, which docker load reads. The image must have one platform.
func (i *Image) dockerManifest() ([]byte, error) {
	m, err := i.single[0].image.Manifest()
	if err != nil {
		return nil, err
	}
	entry := tarball.Descriptor{Config: blobPath(m.Config.Digest), RepoTags: []string{i.name.String()}}
	for _, l := range m.Layers {
		entry.Layers = append(entry.Layers, blobPath(l.Digest))
	}
	return json.Marshal(tarball.Manifest{entry})
}

// taggedObject returns the object that the image's tag refers to. This is the index, or the image if it has only
// one platform.
func (i *Image) taggedObject() described {
	if i.index != nil {
		return i.index
	}
	return i.single[0].image
}

// described has the methods that images and indices have in common.
type described interface {
	partial.Describable
	RawManifest() ([]byte, error)
}

// blobs returns all objects of the image. An object comes before the objects that refer to it.
func (i *Image) blobs() ([]member, error) {
	var list []member
	for _, p := range i.single {
		some, err := imageBlobs(p.image)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if i.index == nil {
		return list, nil
	}
	raw, err := i.index.RawManifest()
	return append(list, fileMember(blobPath(i.digest), raw)), err
}

// imageBlobs returns the layers, the configuration and the manifest of one image, in this order.
func imageBlobs(image v1.Image) ([]member, error) {
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	m, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if len(layers) != len(m.Layers) {
		return nil, errors.New("the manifest of the image does not name its layers")
	}
	var list []member
	for k, l := range layers {
		list = append(list, member{blobPath(m.Layers[k].Digest), m.Layers[k].Size, l.Compressed})
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	return append(list, fileMember(blobPath(m.Config.Digest), config), fileMember(blobPath(digest), manifest)), err
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// member is a file of an archive, or a directory if open is nil.
type member struct {
	name string
	size int64
	open func() (io.ReadCloser, error)
}

func fileMember(name string, content []byte) member {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return member{name, int64(len(content)), open}
}

// writeTar writes members as a tar archive whose bytes do not depend on the time or the user.
func writeTar(w io.Writer, members []member) error {
	archive := tar.NewWriter(w)
	for _, m := range members {
		if err := m.write(archive); err != nil {
			return fmt.Errorf("archive member %s: %w", m.name, err)
		}
	}
	return archive.Close()
}

func (m member) write(archive *tar.Writer) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: 0o644, Size: m.size, ModTime: epoch.Time, Format: tar.FormatUSTAR}
	if m.open == nil {
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
		return archive.WriteHeader(&h)
	}
	if err := archive.WriteHeader(&h); err != nil {
		return err
	}
	r, err := m.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, r)
	return errors.Join(err, r.Close())
}
