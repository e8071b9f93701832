// Package golden compares what a test produced with a file under testdata.
//
// It is for tests only. Run the package's tests with -update to accept their output, and review the difference in
// version control before you commit it. On failure the output is written next to the golden file as <name>.got.
package golden

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "accept what the tests produce as their golden files")

// Check fails t if got differs from testdata/name.
func Check(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && bytes.Equal(got, want) {
		_ = os.Remove(path + ".got") // left by an earlier failure
		return
	}
	if err := os.WriteFile(path+".got", got, 0o666); err != nil {
		t.Error(err)
	}
	t.Errorf("%s differs from what was produced, which is in %s.got; run the test with -update to accept it%s", path, path, firstDifference(want, got))
}

// firstDifference shows the first line that differs.
func firstDifference(want, got []byte) string {
	w, g := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range g {
		if i >= len(w) {
			return "\nfirst new line: " + string(g[i])
		}
		if !bytes.Equal(w[i], g[i]) {
			return "\nwant: " + string(w[i]) + "\ngot:  " + string(g[i])
		}
	}
	return ""
}
