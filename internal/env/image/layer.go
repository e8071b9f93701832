package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is the one layer of an image, compressed once and kept: it is read for each archive, and by a push that starts
// again.
type layer struct {
	compressed     []byte
	digest, diffID v1.Hash
}

// newLayer packs the program.
func newLayer(program []byte) (*layer, error) {
	var packed bytes.Buffer
	digest, diffID := sha256.New(), sha256.New()
	zip := gzip.NewWriter(io.MultiWriter(&packed, digest))
	archive := tar.NewWriter(io.MultiWriter(zip, diffID))
	err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(Program, "/"), Mode: 0o755, Size: int64(len(program)), ModTime: epoch.Time, Format: tar.FormatUSTAR,
	})
	if err != nil {
		return nil, err
	}
	if _, err := archive.Write(program); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return &layer{compressed: packed.Bytes(), digest: sum(digest), diffID: sum(diffID)}, nil
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return int64(len(l.compressed)), nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.compressed)), nil
}
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return gzip.NewReader(bytes.NewReader(l.compressed))
}

// sum is what h has come to, in the form of the registry.
func sum(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}
