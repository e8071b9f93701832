package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// imageFile is one entry of an image's only layer: a program, or a symbolic link when link is set.
type imageFile struct {
	data []byte
	link string
}

// imageSpec is an image of one layer.
type imageSpec struct {
	// names are references with tags; one archive may contain several images.
	names []string
	// files by absolute path.
	files      map[string]imageFile
	entrypoint []string
	arch       string
}

// writeImage writes a docker-archive, which every container runtime imports. Equal specs make equal bytes.
func writeImage(w io.Writer, s imageSpec) error {
	layer, err := imageLayer(s.files)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": s.arch, "os": "linux",
		"config": map[string]any{"Entrypoint": s.entrypoint, "Env": []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(digest[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": s.names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{{"config.json", config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := addFile(t, f.name, 0o644, f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func imageLayer(files map[string]imageFile) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, rel := files[name], name[1:]
		if err := addParents(t, path.Dir(rel), made); err != nil {
			return nil, err
		}
		var err error
		if f.link != "" {
			err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: rel, Linkname: f.link, Mode: 0o777})
		} else {
			err = addFile(t, rel, 0o755, f.data)
		}
		if err != nil {
			return nil, fmt.Errorf("put %s into the layer: %w", name, err)
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func addParents(t *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := addParents(t, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
}

func addFile(t *tar.Writer, name string, mode int64, data []byte) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := t.Write(data)
	return err
}

// libraries returns the absolute paths in the output of ldd. For several files, ldd begins each part with a line of the
// file's name and a colon.
func libraries(ldd string) []string {
	var paths []string
	for _, word := range strings.Fields(ldd) {
		if strings.HasPrefix(word, "/") && !strings.HasSuffix(word, ":") && !slices.Contains(paths, word) {
			paths = append(paths, word)
		}
	}
	return paths
}
