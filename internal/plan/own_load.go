package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// OwnSource is a profile file as it was when the plan was made: what a result measured.
type OwnSource struct {
	Name string `json:"name"`
	// File is the path as the user gave it. Text is its content.
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text"`
	// Parts are the files that it names: conflist, plugins and BPF objects.
	Parts []ownPart `json:"parts,omitempty"`
}

// ownPart is a file that a profile file names.
type ownPart struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	// Text is the content of a conflist.
	Text string `json:"text,omitempty"`
}

// Profile returns the profile that the source describes.
func (s OwnSource) Profile() (OwnProfile, error) {
	o, faults := ReadOwn(s.File, s.Text)
	if o.CNI != nil && !inline(o.CNI.Conflist) {
		if i := slices.IndexFunc(s.Parts, func(p ownPart) bool { return p.Text != "" }); i >= 0 {
			o.CNI.Conflist = s.Parts[i].Text
		}
	}
	return o, faults.Err()
}

// inline reports whether a conflist is JSON and not the name of a file.
func inline(conflist string) bool { return strings.HasPrefix(strings.TrimSpace(conflist), "{") }

// File returns the profile file that v names in place of a profile, or "".
func (v Variant) File() string {
	name := v.Profile()
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || strings.Contains(name, "/") {
		return name
	}
	return ""
}

// named returns v with the name of the profile in place of the file.
func (v Variant) named(name string) Variant {
	_, context, conditions, twin := v.cut()
	return assemble(name, context, conditions, twin)
}

// LoadOwn reads the profile files that the plan names, by read, and names the profiles in their place. Faults are those
// of all files.
func (p Plan) LoadOwn(read func(name string) ([]byte, error)) (Plan, Faults) {
	l := ownLoader{read: read, known: map[string]string{}, sources: slices.Clone(p.Own)}
	p.Profiles = each.Of(p.Profiles, l.resolve)
	p.Baseline = l.resolve(p.Baseline)
	p.Own = slices.DeleteFunc(l.sources, func(s OwnSource) bool {
		return !slices.ContainsFunc(p.Measured(), func(v Variant) bool { return v.Profile() == s.Name })
	})
	if len(p.Own) == 0 {
		p.Own = nil
	}
	if len(p.Own) > 0 && p.OnCluster() {
		l.faults = append(l.faults, Fault{Field: "profiles", Message: fmt.Sprintf("%s is a profile file, and those are for the lab: leave it out, or add --env lab", p.Own[0].File)})
	}
	return p, l.faults
}

type ownLoader struct {
	read func(string) ([]byte, error)
	// known are the names of the profiles by file, "" for a file with faults.
	known   map[string]string
	sources []OwnSource
	faults  Faults
}

// resolve returns v with the name of its profile in place of the file.
func (l *ownLoader) resolve(v Variant) Variant {
	file := v.File()
	if file == "" {
		return v
	}
	name, seen := l.known[file]
	if !seen {
		name = l.load(file)
		l.known[file] = name
	}
	if name == "" {
		return v
	}
	return v.named(name)
}

// load reads a file and what it names. It returns the name of the profile, "" after a fault.
func (l *ownLoader) load(file string) string {
	b, err := l.read(file)
	if err != nil {
		l.faults = append(l.faults, Fault{File: file, Message: "cannot be read: " + reason(err)})
		return ""
	}
	s := OwnSource{File: file, Text: string(b), SHA256: digest(b)}
	o, d := readOwn(file, s.Text)
	s.Name = o.Name
	s.Parts = l.parts(o, ownChecker{d: d, root: 1})
	l.sources = slices.DeleteFunc(l.sources, func(old OwnSource) bool { return old.File == file })
	for _, other := range l.sources {
		if other.Name == o.Name && o.Name != "" {
			d.Fault(d.Line("name"), "name", "%q is the name of %s, too", o.Name, other.File)
		}
	}
	if faults := d.Faults(); len(faults) > 0 {
		l.faults = append(l.faults, faults...)
		return ""
	}
	l.sources = append(l.sources, s)
	return s.Name
}

// parts reads the files that a profile file names.
func (l *ownLoader) parts(o OwnProfile, c ownChecker) []ownPart {
	var parts []ownPart
	add := func(field, name string, keep bool) string {
		b, err := l.read(o.Path(name))
		if err != nil {
			c.fault(field, "%s cannot be read: %s", name, reason(err))
			return ""
		}
		part := ownPart{File: name, SHA256: digest(b)}
		if keep {
			part.Text = string(b)
		}
		parts = append(parts, part)
		return string(b)
	}
	if o.CNI != nil && o.CNI.Conflist != "" && o.CNI.Bin != "" {
		text := o.CNI.Conflist
		if !inline(text) {
			text = add("cni.conflist", o.CNI.Conflist, true)
		}
		if text != "" {
			types, err := conflistTypes(text)
			if err != nil {
				c.fault("cni.conflist", "%s", err)
			}
			c.variables("cni.conflist", text, false)
			for _, name := range types {
				add("cni.bin", filepath.Join(o.CNI.Bin, name), false)
			}
		}
	}
	for i, b := range o.Node.BPF {
		if b.File != "" {
			add(fmt.Sprintf("node.bpf.%d.file", i), b.File, false)
		}
	}
	for i, b := range o.Pod.BPF {
		if b.File != "" {
			add(fmt.Sprintf("pod.bpf.%d.file", i), b.File, false)
		}
	}
	for i, daemon := range o.Node.Daemons {
		if program := beside(daemon.Run); program != "" {
			add(fmt.Sprintf("node.daemons.%d.run", i), program, false)
		}
	}
	for field, commands := range map[string][]string{"node.prepare": o.Node.Prepare, "node.join": o.Node.Join} {
		for _, command := range commands {
			if program := beside(command); program != "" {
				add(field, program, false)
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b ownPart) int { return strings.Compare(a.File, b.File) })
	return slices.CompactFunc(parts, func(a, b ownPart) bool { return a.File == b.File })
}

// beside returns the program of a command if it is a path relative to the profile file, else "".
func beside(command string) string {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(command), "exec "))
	if len(words) == 0 || !strings.HasPrefix(words[0], "./") && !strings.HasPrefix(words[0], "../") {
		return ""
	}
	return words[0]
}

// ChangedOwn returns an error that names the first profile file, or file that one names, that has changed since the plan
// was made.
func (p Plan) ChangedOwn(read func(name string) ([]byte, error)) error {
	same := func(file, sum string) error {
		b, err := read(file)
		if err != nil {
			return fmt.Errorf("profile file: %s cannot be read: %s", file, reason(err))
		}
		if now := digest(b); now != sum {
			return advice.With(fmt.Errorf("%s has changed since the run began: its SHA-256 was %.12s, and is %.12s", file, sum, now),
				"restore it, or measure it in a new result: -o another.jsonl")
		}
		return nil
	}
	for _, s := range p.Own {
		if err := same(s.File, s.SHA256); err != nil {
			return err
		}
		for _, part := range s.Parts {
			if err := same(OwnProfile{Dir: filepath.Dir(s.File)}.Path(part.File), part.SHA256); err != nil {
				return err
			}
		}
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// reason returns an error of the file system without the path, which the caller has named.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
