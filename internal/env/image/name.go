package image

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Repositories of the image by default. A release pushes its image to ReleaseRepository. The registry of Repository
// does not exist. A node without the image of a development build therefore asks no registry on the internet, and
// reports an error.
const (
	Repository        = "cnibench.local/cnibench"
	ReleaseRepository = "ghcr.io/cnibench/cnibench"
)

// released matches the version of a release: v0.1.0, 0.1.0 or 0.1.0-rc.1. It does not match a snapshot or a commit
// after a release.
var released = pattern.New(`^v?[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$`)

// Released reports whether the version is a release, whose image is in a registry.
func Released(version string) bool { return released.MatchString(version) }

// dockerHub is the library's name of the registry docker.io.
const dockerHub = "index.docker.io"

// Name is the reference of an image: a repository and a tag.
type Name struct{ repository, tag string }

func (n Name) String() string { return n.repository + ":" + n.tag }

// DefaultName returns the image that a run uses unless the user names another one. For a release it is in
// ReleaseRepository, otherwise in Repository. The tag is the version.
func DefaultName(version string) Name {
	if Released(version) {
		return Name{ReleaseRepository, tagOf(strings.TrimPrefix(version, "v"))}
	}
	return Name{Repository, tagOf(version)}
}

// ParseName parses the reference s of an image. The default tag is made from version. It fails for a reference with
// a digest. It also fails for the tag latest, because nodes may have an older image of that name.
func ParseName(s, version string) (Name, error) {
	if strings.Contains(s, "@") {
		return Name{}, advice.With(fmt.Errorf("image name %q has a digest, which is computed and not chosen", s), "leave out what follows the @")
	}
	tag, err := name.NewTag(s, name.WithDefaultTag(tagOf(version)))
	if err != nil {
		return Name{}, fmt.Errorf("image name %q: %w", s, err)
	}
	if !repositoryPath.MatchString(tag.RepositoryStr()) {
		return Name{}, advice.With(fmt.Errorf("image name %q: %q is not a repository path", s, tag.RepositoryStr()),
			"write REGISTRY/PATH:TAG in small letters, without a scheme such as https://")
	}
	if tag.TagStr() == "latest" {
		return Name{}, advice.With(fmt.Errorf("image name %q: the tag latest does not say which version a node runs", s),
			"choose another tag, or leave it out for "+tagOf(version))
	}
	registry := tag.RegistryStr()
	if registry == dockerHub {
		registry = "docker.io"
	}
	return Name{registry + "/" + tag.RepositoryStr(), tag.TagStr()}, nil
}

// repositoryPath is the syntax of a repository by the distribution specification; the library is less strict.
var repositoryPath = pattern.New(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// maxTag is the maximum length of a tag.
const maxTag = 128

// tagOf returns version as a valid tag. It replaces every invalid character by a hyphen: v1.2.0+dirty becomes v1.2.0-dirty.
func tagOf(version string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, version)
	clean = cmp.Or(strings.TrimLeft(clean, ".-"), "unknown")
	return clean[:min(len(clean), maxTag)]
}
