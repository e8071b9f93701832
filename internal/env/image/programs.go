package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// packed is a file to put into an image.
type packed struct {
	// name is the path in the image without the first slash.
	name    string
	content []byte
}

// packPrograms reads programs of this machine and returns them as files of the image, in its PATH. It adds their
// loaders and all libraries that they are linked with. It does not add files that a program opens at run time. It
// fails for a program that is not for machine. The error lists every fault.
func packPrograms(files []string, machine elf.Machine) ([]packed, error) {
	c := &closure{machine: machine, seen: map[string]bool{}}
	for _, f := range files {
		c.addProgram(f)
	}
	slices.SortFunc(c.files, func(a, b packed) int { return strings.Compare(a.name, b.name) })
	return c.files, errors.Join(c.errs...)
}

// closure collects programs with the loaders and libraries that they need.
type closure struct {
	machine elf.Machine
	files   []packed
	seen    map[string]bool // names in the image
	// home is the directory in the image for all libraries. It is this machine's directory of the C library. The
	// loader searches that directory even without ld.so.cache, which the image does not have.
	home string
	errs []error
}

// addFile adds a file of this machine to the image as name. added is false if the image already has a file of that name, or
// if the file cannot be read. The second case is recorded in errs.
func (c *closure) addFile(name, file string) (content []byte, added bool) {
	if c.seen[name] {
		return nil, false
	}
	c.seen[name] = true
	content, err := os.ReadFile(file)
	if err != nil {
		c.errs = append(c.errs, err)
		return nil, false
	}
	c.files = append(c.files, packed{name, content})
	return content, true
}

// addProgram adds a program, its loader and its libraries. It records faults in errs.
func (c *closure) addProgram(file string) {
	content, added := c.addFile(path.Base(filepath.ToSlash(file)), file)
	if !added {
		return
	}
	e, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		c.errs = append(c.errs, advice.With(fmt.Errorf("%s is not a program that an image can hold: %w", file, err), "install the program itself, not a script that starts it"))
		return
	}
	if e.Machine != c.machine {
		c.errs = append(c.errs, fmt.Errorf("%s is for %s, and the image is for %s", file, e.Machine, c.machine))
		return
	}
	for _, p := range e.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s: %w", file, err))
			return
		}
		name := strings.TrimRight(string(loader), "\x00")
		c.addFile(strings.TrimPrefix(name, "/"), name)
	}
	c.addLibraries(file, e)
}

// addLibraries adds the libraries that a program or library is linked with.
func (c *closure) addLibraries(file string, e *elf.File) {
	needed, err := e.ImportedLibraries()
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", file, err))
		return
	}
	var own []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := e.DynString(tag) // absent in most
		for _, list := range lists {
			own = append(own, filepath.SplitList(strings.NewReplacer("${ORIGIN}", filepath.Dir(file), "$ORIGIN", filepath.Dir(file)).Replace(list))...)
		}
	}
	for _, name := range needed {
		found, lib := findLibrary(name, append(own, libraryDirs()...), c.machine)
		if lib == nil {
			c.errs = append(c.errs, advice.With(fmt.Errorf("%s needs %s, which is not on this machine", file, name), "see ldd "+file))
			continue
		}
		if c.home == "" {
			c.home = path.Dir(filepath.ToSlash(found))
			if libc, _ := findLibrary("libc.so.6", libraryDirs(), c.machine); libc != "" {
				c.home = path.Dir(filepath.ToSlash(libc))
			}
		}
		if _, added := c.addFile(strings.TrimPrefix(path.Join(c.home, name), "/"), found); added {
			c.addLibraries(found, lib)
		}
	}
}

// findLibrary searches dirs in order for a library that is built for machine. It returns its path and contents, or "" and nil.
func findLibrary(name string, dirs []string, machine elf.Machine) (string, *elf.File) {
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if e, err := elf.NewFile(bytes.NewReader(content)); err == nil && e.Machine == machine {
			return file, e
		}
	}
	return "", nil
}

// libraryDirs returns the directories that this machine's loader searches: its own, then those of its configuration.
func libraryDirs() []string {
	var dirs []string
	for _, pattern := range []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		some, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, some...)
	}
	configured, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, file := range append(configured, "/etc/ld.so.conf") {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the file does not exist, or is not readable
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") && !slices.Contains(dirs, line) {
				dirs = append(dirs, line)
			}
		}
	}
	return dirs
}
