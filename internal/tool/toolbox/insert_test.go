package toolbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const begin, end = "<!-- truth: written by make truth -->\n", "<!-- end of truth -->\n"
	if err := os.WriteFile(file, []byte("a\n"+begin+"old\n"+end+"b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Table(file, "truth", "echo", "new\n"); err != nil {
		t.Fatal(err)
	}
	const want = "\nnew\n\nWritten by `version`.\n\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != "a\n"+begin+want+end+"b\n" {
		t.Errorf("%q %v", got, err)
	}
	if got, err := Read(file, "truth"); got != want || err != nil {
		t.Errorf("read back: %q %v", got, err)
	}
	if err := Table(file, "aa", "echo", "new\n"); err == nil {
		t.Error("a document without the comments was accepted")
	}
	if err := Table(file, "truth", "false", "new\n"); err == nil {
		t.Error("a program without a version was accepted")
	}
}
