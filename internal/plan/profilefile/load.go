package profilefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Of returns the profile that a source describes. If its conflist is the name of a file, the text of that file replaces
// the name. It fails with position.Faults.
func Of(s plan.OwnSource) (Profile, error) {
	kept := func(name string) (string, error) {
		if i := slices.IndexFunc(s.Parts, func(p plan.OwnPart) bool { return p.File == name }); i >= 0 {
			return s.Parts[i].Text, nil
		}
		return "", errors.New("its text was not kept")
	}
	o, layers := parseProfile(s.File, s.Text, kept)
	if o.CNI != nil && !isInline(o.CNI.Conflist) {
		if text, err := kept(o.CNI.Conflist); err == nil {
			o.CNI.Conflist = text
		}
	}
	return o, faultsOf(layers).Err()
}

// isInline reports whether a conflist is JSON and not the name of a file.
func isInline(conflist string) bool { return strings.HasPrefix(strings.TrimSpace(conflist), "{") }

// Load reads the profile files that the variants of a plan name, with the function read. The plan that it returns has
// the names of the profiles in place of the files, and the files in Own. The Faults list what is wrong in any of the
// files.
func Load(p plan.Plan, read func(name string) ([]byte, error)) (plan.Plan, position.Faults) {
	l := loader{read: read, known: map[string]string{}, sources: slices.Clone(p.Own)}
	p.Profiles = each.Of(p.Profiles, l.resolveVariant)
	p.Baseline = l.resolveVariant(p.Baseline)
	p.Own = slices.DeleteFunc(l.sources, func(s plan.OwnSource) bool {
		return !slices.ContainsFunc(p.Measured(), func(v plan.Variant) bool { return v.Profile() == s.Name })
	})
	if len(p.Own) == 0 {
		p.Own = nil
	}
	if len(p.Own) > 0 && p.OnCluster() {
		l.faults = append(l.faults, position.Fault{Field: "profiles", Message: fmt.Sprintf("%s is a profile file, and those are for the lab: leave it out, or add --env lab", p.Own[0].File)})
	}
	return p, each.Once(l.faults) // a file may be the base of several
}

type loader struct {
	read func(string) ([]byte, error)
	// known has the name of the profile of each file, "" for a file with faults.
	known   map[string]string
	sources []plan.OwnSource
	faults  position.Faults
}

// resolveVariant returns v with its profile file replaced by the name of the profile. It loads each file once. If the
// file has faults, it returns v unchanged.
func (l *loader) resolveVariant(v plan.Variant) plan.Variant {
	file := v.File()
	if file == "" {
		return v
	}
	name, seen := l.known[file]
	if !seen {
		name = l.loadFile(file)
		l.known[file] = name
	}
	if name == "" {
		return v
	}
	return v.Named(name)
}

// loadFile reads a profile file and the files that it and its bases name. It returns the name of the profile, or "" if there is a
// fault.
func (l *loader) loadFile(file string) string {
	b, err := l.read(file)
	if err != nil {
		l.faults = append(l.faults, position.Fault{File: file, Message: "cannot be read: " + messageWithoutPath(err)})
		return ""
	}
	s := plan.OwnSource{File: file, Text: string(b), SHA256: sha256Hex(b)}
	o, layers := parseProfile(file, s.Text, func(name string) (string, error) {
		b, err := l.read(filepath.Join(filepath.Dir(file), name))
		if err == nil {
			s.Parts = append(s.Parts, plan.OwnPart{File: name, SHA256: sha256Hex(b), Text: string(b)})
		}
		return string(b), err
	})
	s.Name = o.Name
	for _, at := range layers {
		s.Parts = append(s.Parts, l.readParts(at.said, at.checker)...)
	}
	slices.SortStableFunc(s.Parts, func(a, b plan.OwnPart) int { return strings.Compare(a.File, b.File) })
	s.Parts = slices.CompactFunc(s.Parts, func(a, b plan.OwnPart) bool { return a.File == b.File })
	d := layers[0].d
	l.sources = slices.DeleteFunc(l.sources, func(old plan.OwnSource) bool { return old.File == file })
	for _, other := range l.sources {
		if other.Name == o.Name && o.Name != "" {
			d.Fault(d.Line("name"), "name", "%q is the name of %s, too", o.Name, other.File)
		}
	}
	if faults := faultsOf(layers); len(faults) > 0 {
		l.faults = append(l.faults, faults...)
		return ""
	}
	l.sources = append(l.sources, s)
	return s.Name
}

// readParts reads the files that a profile file names, except for its base. It adds a fault for a file that cannot be read,
// and for an invalid conflist.
func (l *loader) readParts(o Profile, c checker) []plan.OwnPart {
	var parts []plan.OwnPart
	add := func(field, name string, keep bool) string {
		b, err := l.read(o.Path(name))
		if err != nil {
			c.addFault(field, "%s cannot be read: %s", name, messageWithoutPath(err))
			return ""
		}
		part := plan.OwnPart{File: name, SHA256: sha256Hex(b)}
		if keep {
			part.Text = string(b)
		}
		parts = append(parts, part)
		return string(b)
	}
	if o.CNI != nil && o.CNI.Conflist != "" && o.CNI.Bin != "" {
		text := o.CNI.Conflist
		if !isInline(text) {
			text = add("cni.conflist", o.CNI.Conflist, true)
		}
		if text != "" {
			types, err := pluginNames(text)
			if err != nil {
				c.addFault("cni.conflist", "%s", err)
			}
			c.checkVariables("cni.conflist", text)
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
		if program := relativeProgram(daemon.Run); program != "" {
			add(fmt.Sprintf("node.daemons.%d.run", i), program, false)
		}
	}
	for field, commands := range map[string][]string{"node.prepare": o.Node.Prepare, "node.join": o.Node.Join, "node.services": o.Node.Services} {
		for _, command := range commands {
			if program := relativeProgram(command); program != "" {
				add(field, program, false)
			}
		}
	}
	return parts
}

// relativeProgram returns the program of a command if it is a path relative to the profile file, and "" otherwise.
func relativeProgram(command string) string {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(command), "exec "))
	if len(words) == 0 || !strings.HasPrefix(words[0], "./") && !strings.HasPrefix(words[0], "../") {
		return ""
	}
	return words[0]
}

// Changed returns an error if a profile file of the plan, or a file that it names, cannot be read or has changed since
// the plan was made. The error names the first such file.
func Changed(p plan.Plan, read func(name string) ([]byte, error)) error {
	same := func(file, sum string) error {
		b, err := read(file)
		if err != nil {
			return fmt.Errorf("profile file: %s cannot be read: %s", file, messageWithoutPath(err))
		}
		if now := sha256Hex(b); now != sum {
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
			if err := same(Profile{Dir: filepath.Dir(s.File)}.Path(part.File), part.SHA256); err != nil {
				return err
			}
		}
	}
	return nil
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// messageWithoutPath returns the message of a file system error without the path, which the caller's message has already.
func messageWithoutPath(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
