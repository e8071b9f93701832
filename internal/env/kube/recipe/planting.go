package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// The command that applies a PlantSpec, and the paths in its pods.
const (
	// PlantVerb is the command of cnibench that applies a PlantSpec to a node.
	PlantVerb = "plant"
	// PlantDir is the node's directory of CNI configuration.
	PlantDir = "/cni"
	// PlantSpecs is a directory with a PlantSpec in JSON for each node. The file name is the name of the node.
	PlantSpecs = "/specs"
	// PlantReady is a file that exists as long as the PlantSpec is applied.
	PlantReady = "/tmp/planted"
)

// PlantSpec is the configuration of a node for a CNI plugin without a daemon: a file of CNI configuration, and routes to the
// pods of other nodes. A pod on the node applies it, and removes the file when the pod ends.
type PlantSpec struct {
	// File is the name of the file of CNI configuration, Text its contents.
	File string `json:"file"`
	Text string `json:"text"`
	// Routes lead to the other nodes' pods.
	Routes []PlantRoute `json:"routes,omitempty"`
}

// PlantRoute is a route to the pods of another node through that node's address.
type PlantRoute struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// ParsePlant reads a PlantSpec. It fails if File has a directory or is hidden, if Text is not JSON, or if a route is
// incomplete.
func ParsePlant(text []byte) (PlantSpec, error) {
	var s PlantSpec
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("CNI configuration of the node: %w", err)
	}
	if s.File == "" || strings.ContainsAny(s.File, "/\x00") || strings.HasPrefix(s.File, ".") {
		return s, fmt.Errorf("CNI configuration of the node: %q is not a file name", s.File)
	}
	if !json.Valid([]byte(s.Text)) {
		return s, fmt.Errorf("CNI configuration of the node: %s is not JSON", s.File)
	}
	for _, r := range s.Routes {
		if !r.To.IsValid() || !r.Via.IsValid() {
			return s, errors.New("CNI configuration of the node: a route lacks its destination or its next hop")
		}
	}
	return s, nil
}

// Write writes the file into dir. It replaces the file atomically, so that a runtime never reads a part of it.
func (s PlantSpec) Write(dir string) error {
	text := []byte(s.Text)
	f, err := os.CreateTemp(dir, ".cnibench-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, s.File))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Remove deletes the file from dir, if it exists.
func (s PlantSpec) Remove(dir string) error {
	err := os.Remove(filepath.Join(dir, s.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
