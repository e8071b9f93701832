package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// suffix is how the name of a result ends in a directory.
const suffix = ".jsonl"

// maxFiles is the most results of one directory, maxNames the most names that are looked at to find them.
const (
	maxFiles = 5000
	maxNames = 100_000
)

// PathError is a path that cannot be served.
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q: %v", e.Path, e.Err) }
func (e *PathError) Unwrap() error { return e.Err }

// source is a path that was given.
type source struct {
	path string
	// prefix is what the names of its results begin with: "" of the first path, "2/" of the second.
	prefix string
}

// file is a result file as it lies there now.
type file struct {
	// name is unique among all, and what requests call it.
	name string
	at   source
	// base is its name in the directory, "" if the path is the file itself.
	base string
	info fs.FileInfo
	// err is why it cannot be looked at; info is nil then.
	err error
}

// sources checks paths; the error names all that cannot be used.
func sources(paths []string) ([]source, error) {
	var list []source
	var bad []error
	for i, p := range paths {
		if _, err := os.Stat(p); err != nil {
			bad = append(bad, &PathError{p, reason(err)})
		}
		s := source{path: p}
		if i > 0 {
			s.prefix = strconv.Itoa(i+1) + "/"
		}
		list = append(list, s)
	}
	return list, errors.Join(bad...)
}

// list returns the results under s. A directory that cannot be read is one file with an error.
func (s source) list() []file {
	info, err := os.Stat(s.path)
	whole := file{name: s.prefix + filepath.Base(s.path), at: s, info: info, err: reasonOrNil(err)}
	if err != nil || !info.IsDir() {
		return []file{whole}
	}
	root, err := os.OpenRoot(s.path)
	if err != nil {
		whole.info, whole.err = nil, reason(err)
		return []file{whole}
	}
	defer root.Close() // it was only read
	names, err := results(root)
	var files []file
	for _, base := range names {
		f := file{name: s.prefix + base, at: s, base: base}
		if f.info, f.err = root.Stat(base); errors.Is(f.err, fs.ErrNotExist) && !linked(root, base) {
			continue // it has gone in the meantime
		}
		f.err = reasonOrNil(f.err)
		files = append(files, f)
	}
	if err != nil {
		whole.info, whole.err = nil, err
		files = append(files, whole)
	}
	return files
}

// results are the names of the results in a directory, sorted. The error says that they are not all.
func results(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, reason(err)
	}
	defer d.Close() // it was only read
	var names []string
	for seen := 0; ; {
		some, err := d.Readdirnames(1000)
		for _, n := range some {
			if strings.HasSuffix(n, suffix) && !strings.HasPrefix(n, ".") {
				names = append(names, n)
			}
		}
		seen += len(some)
		if err == nil && (seen > maxNames || len(names) > maxFiles) {
			err = fmt.Errorf("it has more than %d results or %d names, and not all are shown: move the old ones away", maxFiles, maxNames)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			continue
		}
		slices.Sort(names)
		return names[:min(len(names), maxFiles)], err
	}
}

// linked says whether base is a link, whatever it leads to.
func linked(root *os.Root, base string) bool {
	info, err := root.Lstat(base)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// open opens f if it is a regular file. It does not wait for the other end of a named pipe.
func (f file) open() (*os.File, fs.FileInfo, error) {
	if f.err != nil {
		return nil, nil, f.err
	}
	if !f.info.Mode().IsRegular() {
		return nil, nil, errNotRegular
	}
	opened, err := f.reach()
	if err != nil {
		return nil, nil, reason(err)
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(reason(err), opened.Close())
	}
	return opened, info, nil
}

var errNotRegular = errors.New("it is not a regular file")

// reach opens f, of a directory without leaving it.
func (f file) reach() (*os.File, error) {
	const how = os.O_RDONLY | syscall.O_NONBLOCK
	if f.base == "" {
		return os.OpenFile(f.at.path, how, 0)
	}
	root, err := os.OpenRoot(f.at.path)
	if err != nil {
		return nil, err
	}
	defer root.Close() // what was opened in it stays open
	return root.OpenFile(f.base, how, 0)
}

// same says whether a file with a is unchanged with b.
func same(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

func reasonOrNil(err error) error {
	if err == nil {
		return nil
	}
	return reason(err)
}

// all are the results of all sources by name.
func all(sources []source) []file {
	var files []file
	for _, s := range sources {
		files = append(files, s.list()...)
	}
	slices.SortStableFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(files, func(a, b file) bool { return a.name == b.name })
}
