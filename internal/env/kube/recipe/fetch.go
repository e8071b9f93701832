package recipe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/kube/chart"
)

const (
	// fetchBytes bounds the size of a manifest, an index or a chart. Calico's definitions have 1.7 MB.
	fetchBytes = 32 << 20
	fetchLimit = time.Minute
)

// fetchFile downloads a file within fetchLimit. It fails if the file has more than fetchBytes.
func fetchFile(ctx context.Context, address string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, fetchLimit)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, fetchBytes+1))
	if err == nil && len(text) > fetchBytes {
		err = fmt.Errorf("%s: more than %d bytes", address, fetchBytes)
	}
	return text, err
}

// fetchChart downloads a chart from its repository. If the download fails, the error tells how to install without it.
func fetchChart(ctx context.Context, c Chart) (*chart.Chart, error) {
	archive, err := fetchArchive(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("fetch chart %s %s from %s: %w (download it elsewhere and give it with --chart)", c.Chart, c.Version, c.Repo, err)
	}
	return chart.Read(bytes.NewReader(archive))
}

// fetchArchive downloads the archive of a chart from its repository. If the repository's index has a digest
// of the archive, fetchArchive fails unless the archive has this digest.
func fetchArchive(ctx context.Context, c Chart) ([]byte, error) {
	base, err := url.Parse(strings.TrimSuffix(c.Repo, "/") + "/")
	if err != nil {
		return nil, err
	}
	text, err := fetchFile(ctx, base.String()+"index.yaml")
	if err != nil {
		return nil, err
	}
	var index struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("index.yaml: %w", err)
	}
	for _, e := range index.Entries[c.Chart] {
		if !matchesVersion(e.Version, c.Version) || len(e.URLs) == 0 {
			continue
		}
		address, err := base.Parse(e.URLs[0]) // it may be relative
		if err != nil {
			return nil, err
		}
		archive, err := fetchFile(ctx, address.String())
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(archive); e.Digest != "" && strings.TrimPrefix(e.Digest, "sha256:") != hex.EncodeToString(sum[:]) {
			return nil, fmt.Errorf("%s: its digest is sha256:%x, index.yaml says %s", address, sum, e.Digest)
		}
		return archive, nil
	}
	return nil, fmt.Errorf("index.yaml does not list version %s", c.Version)
}

// matchesVersion reports whether version is the one that asked names. If asked is a minor version, such as "1.14", every
// release of it matches.
func matchesVersion(version, asked string) bool {
	return version == asked || strings.Count(asked, ".") == 1 && strings.HasPrefix(version, asked+".") && !strings.Contains(version, "-")
}

// readManifest reads a manifest from the user's Source, or downloads it if Source does not have it.
func (i *Installer) readManifest(ctx context.Context, m Manifest) (string, error) {
	names := []string{path.Join(m.Version, path.Base(m.URL))}
	if i.Version == "" {
		names = append(names, path.Base(m.URL))
	}
	if at := i.localPath(names...); at != "" {
		text, err := os.ReadFile(at)
		return string(text), err
	}
	text, err := fetchFile(ctx, m.URL)
	if err != nil {
		return "", fmt.Errorf("fetch manifest: %w (download it elsewhere and give it with --chart)", err)
	}
	return string(text), nil
}

// localPath returns the path of the first of names that exists in the directory Source. If none exists, it returns Source
// itself, even if Source does not exist. It returns "" if Source is "", or a directory that is not a chart.
func (i *Installer) localPath(names ...string) string {
	if i.Source == "" {
		return ""
	}
	for _, n := range names {
		if at := filepath.Join(i.Source, n); exists(at) {
			return at
		}
	}
	if info, err := os.Stat(i.Source); err == nil && info.IsDir() && !exists(filepath.Join(i.Source, "Chart.yaml")) {
		return "" // a directory with other things
	}
	return i.Source
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
