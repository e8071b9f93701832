package residue

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// mostFiles bounds how many entries of one directory are listed: a node with Calico has a pin for each program.
const mostFiles = 200

// Files lists the entries of the directories in paths on a node whose root is at root. unseen lists what could not be read,
// with the reason.
func Files(root string) (found, unseen []string) {
	for _, dir := range paths {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			unseen = append(unseen, dir+": "+bareErrorText(err))
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

// bareErrorText returns the text of an error without its path. That path is not the path on the node.
func bareErrorText(err error) string {
	var bad *fs.PathError
	if errors.As(err, &bad) {
		return bad.Err.Error()
	}
	return err.Error()
}
