// Package planting says what is put onto a node so that a CNI plugin without a daemon works there: one file of CNI
// configuration, and routes to the other nodes' pods. Package recipe writes it for each node, and a pod on the node puts
// it there and takes it away again when it is told to end.
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

// Verb is the command of this program that plants; its pods mount the directory of CNI configuration at Dir and the
// specifications, one file named after each node, at Specs.
const (
	Verb  = "plant"
	Dir   = "/cni"
	Specs = "/specs"
	// Ready is a file that is there while everything is planted.
	Ready = "/tmp/planted"
)

// Spec is what is planted on one node.
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

// Parse reads a specification. The file must be one of the directory itself.
func Parse(text []byte) (Spec, error) {
	var s Spec
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("what is to be planted: %w", err)
	}
	if s.File == "" || strings.ContainsAny(s.File, "/\x00") || strings.HasPrefix(s.File, ".") {
		return s, fmt.Errorf("what is to be planted: %q is no name of a file", s.File)
	}
	if !json.Valid([]byte(s.Text)) {
		return s, fmt.Errorf("what is to be planted: %s is no JSON", s.File)
	}
	for _, r := range s.Routes {
		if !r.To.IsValid() || !r.Via.IsValid() {
			return s, errors.New("what is to be planted: a route lacks its destination or its next hop")
		}
	}
	return s, nil
}

// Write puts the file into dir. A runtime that reads the directory meanwhile sees all of it or nothing.
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

// Remove takes the file out of dir.
func (s Spec) Remove(dir string) error {
	err := os.Remove(filepath.Join(dir, s.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
