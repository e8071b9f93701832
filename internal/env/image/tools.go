package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// labelTools is the label of an image that names the tools in it, separated by commas.
const labelTools = "dev.cnibench.tools"

const (
	// withTools separates the version from the tools in the tag of an image.
	withTools = "-with-"
	// askLimit bounds a request to a registry.
	askLimit = 10 * time.Second
)

// ToolsVersion returns version followed by the sorted names of tools. A tag made from it shows what the image contains.
func ToolsVersion(version string, tools []string) string {
	if len(tools) == 0 {
		return version
	}
	return version + withTools + strings.Join(slices.Compact(slices.Sorted(slices.Values(tools))), "-")
}

// ToolsName returns the default name of an image with tools. It is always in Repository: releases do not push such images, so
// users load them on the nodes.
func ToolsName(version string, tools []string) Name {
	return Name{Repository, tagOf(ToolsVersion(version, tools))}
}

// ToolsOf returns the tools in an image: from its tag, else from its label in the registry. known is false if neither shows
// them, as for an image that was only loaded on nodes under another name.
func ToolsOf(ctx context.Context, reference string) (tools []string, known bool) {
	if _, tools, said := splitTools(reference); said {
		return tools, true
	}
	ref, err := name.ParseReference(reference)
	if err != nil || Local(reference) {
		return nil, false
	}
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	found, err := remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("cnibench"))
	if err != nil {
		return nil, false
	}
	config, err := found.ConfigFile()
	if err != nil || config.Config.Labels["org.opencontainers.image.title"] != title {
		return nil, false
	}
	if label := config.Config.Labels[labelTools]; label != "" {
		tools = strings.Split(label, ",")
	}
	return tools, true
}

// MissingTools returns the error for an image that lacks the tools in missing. Its advice is how to make an image with all
// tools.
func MissingTools(reference string, missing, tools []string) error {
	return advice.With(fmt.Errorf("image %s has no %s, which the plan names", reference, strings.Join(missing, ", ")),
		"make one where the tools are installed: cnibench image --with "+strings.Join(tools, ",")+" --push REFERENCE, then --image REFERENCE")
}

// Local reports whether an image is in Repository, which no registry serves. Such an image must be loaded on the nodes.
func Local(reference string) bool { return strings.HasPrefix(reference, Repository+":") }

// Serving returns an image in present that has the version and all tools of wanted. Of several such images it returns the
// image with the fewest tools. It returns wanted if there is no such image, or if wanted has no tools.
func Serving(wanted string, present []string) string {
	base, tools, said := splitTools(wanted)
	if !said {
		return wanted
	}
	best, fewest := wanted, 0
	for _, p := range slices.Sorted(slices.Values(present)) {
		b, has, _ := splitTools(p)
		serves := b == base && !strings.Contains(p, "@") && !slices.ContainsFunc(tools, func(t string) bool { return !slices.Contains(has, t) })
		if serves && (fewest == 0 || len(has) < fewest) {
			best, fewest = p, len(has)
		}
	}
	return best
}

// splitTools splits a reference made with ToolsVersion into the part before the tools, and the tools. It drops a digest.
// said is false if the reference names no tools.
func splitTools(reference string) (base string, tools []string, said bool) {
	reference, _, _ = strings.Cut(reference, "@")
	i := strings.LastIndex(reference, withTools)
	if i < strings.LastIndex(reference, ":") || i < 0 {
		return reference, nil, false
	}
	return reference[:i], strings.Split(reference[i+len(withTools):], "-"), true
}
