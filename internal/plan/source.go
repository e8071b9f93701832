package plan

import (
	"path/filepath"
	"strings"
)

// OwnSource is a profile file with the content that it had when the plan was made. So a result shows what was measured.
type OwnSource struct {
	Name string `json:"name"`
	// File is the path as the user gave it. Text is its content.
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
	// Parts are the files that the profile file and its bases name: the bases, conflist, plugins, BPF objects and programs.
	Parts []OwnPart `json:"parts,omitempty"`
}

// OwnPart is a file that a profile file names.
type OwnPart struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	// Text is the content of a conflist or of a base.
	Text string `json:"text,omitempty"`
}

// File returns the profile file that v has in place of the name of a profile, or "".
func (v Variant) File() string {
	name := v.Profile()
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || strings.Contains(name, "/") {
		return name
	}
	return ""
}
