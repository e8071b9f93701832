// Package planting describes what a node needs for a CNI plugin without a daemon: one file of CNI configuration, and routes
// to the other nodes' pods. Package recipe writes a Spec for each node. A pod on the node applies it, and removes the file
// when it ends.
package planting

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

// Verb is the command of this program that applies a Spec. Its pods mount the directory of CNI configuration at Dir and the
// specifications, one file for each node, at Specs.
const (
	Verb  = "plant"
	Dir   = "/cni"
	Specs = "/specs"
	// Ready is a file that exists while the Spec is applied.
	Ready = "/tmp/planted"
)

// Spec is the configuration of one node.
type Spec struct {
	// File is the name of the file of CNI configuration, Text its contents.
	File string `json:"file"`
	Text string `json:"text"`
	// Routes lead to the other nodes' pods.
	Routes []Route `json:"routes,omitempty"`
}

// Route leads to the pods of another node by way of its address.
type Route struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// Parse reads a Spec. It fails if the file is not in the directory itself, or its text is not JSON.
func Parse(text []byte) (Spec, error) {
	var s Spec
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

// Write writes the file into dir. A runtime that reads dir meanwhile sees the whole file or none.
func (s Spec) Write(dir string) error {
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

// Remove deletes the file from dir.
func (s Spec) Remove(dir string) error {
	err := os.Remove(filepath.Join(dir, s.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
