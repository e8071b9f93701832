package plan

import (
	"path/filepath"
	"strings"
)

// OwnSource is a profile file with its content when the plan was made, so that a result shows what it measured.
type OwnSource struct {
	Name string `json:"name"`
	// File is the path as the user gave it. Text is its content.
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
	// Parts are the files that the profile file names: conflist, plugins, BPF objects and programs.
	Parts []OwnPart `json:"parts,omitempty"`
}

// OwnPart is a file that a profile file names.
type OwnPart struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	// Text is the content of a conflist.
	Text string `json:"text,omitempty"`
}

// File returns the profile file that v names in place of a profile, or "".
func (v Variant) File() string {
	name := v.Profile()
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || strings.Contains(name, "/") {
		return name
	}
	return ""
}
