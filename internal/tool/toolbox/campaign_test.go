package toolbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKept: results stay where they are asked for, and are gone otherwise.
func TestKept(t *testing.T) {
	keep, failed := filepath.Join(t.TempDir(), "a", "b"), errors.New("failed")
	for _, dir := range []string{keep, ""} {
		at := ""
		err := Kept(dir, func(dir string) error {
			at = dir
			return errors.Join(failed, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
		})
		_, missing := os.Stat(filepath.Join(at, "x"))
		if !errors.Is(err, failed) || (missing == nil) != (dir != "") {
			t.Errorf("%q: %v, %v", dir, err, missing)
		}
	}
}

// TestOutput: what a command prints comes back, and its last words are in the error.
func TestOutput(t *testing.T) {
	out, err := Output(t.Context(), "sh", "-c", "echo seen; echo why >&2; exit 3")
	if out != "seen\n" || err == nil || !strings.HasSuffix(err.Error(), "exit status 3: why\n") {
		t.Errorf("%q, %v", out, err)
	}
}
