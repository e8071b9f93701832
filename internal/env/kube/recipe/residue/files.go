package residue

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// mostFiles bounds how many entries of one directory are listed: a node of Calico's has a pin for each program.
const mostFiles = 200

// Files lists the entries of Paths below root, as paths of the node that root is. What may not be read is named.
func Files(root string) (found, unseen []string) {
	for _, dir := range Paths {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			unseen = append(unseen, dir+": "+reason(err))
			continue
		}
		for n, e := range entries {
			if n == mostFiles {
				unseen = append(unseen, dir+": more than can be listed")
				break
			}
			found = append(found, path.Join(dir, e.Name()))
		}
	}
	return found, unseen
}

// reason is an error without the path, which here is not the node's.
func reason(err error) string {
	var bad *fs.PathError
	if errors.As(err, &bad) {
		return bad.Err.Error()
	}
	return err.Error()
}
