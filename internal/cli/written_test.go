package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteTo: a file appears whole or stays as it was, behind a link, too, and nothing is left beside it.
func TestWriteTo(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "report.txt"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(name, []byte("old"), 0o600), os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	text := func() string { b, _ := os.ReadFile(name); return string(b) }
	full := errors.New("disk full")
	half := func(w io.Writer) error { _, err := io.WriteString(w, "ha"); return errors.Join(err, full) }
	if err := (&program{}).writeOutput(name, half); !errors.Is(err, full) || text() != "old" {
		t.Errorf("%v, and the file is %q", err, text())
	}
	whole := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	if err := (&program{}).writeOutput(link, whole); err != nil || text() != "new" {
		t.Errorf("%v, and the file is %q", err, text())
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced", err)
	}
	var exit *exitError
	if err := (&program{}).writeOutput(filepath.Join(dir, "no", "file"), whole); !errors.As(err, &exit) || exit.code != exitUsage {
		t.Errorf("no directory: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v %v", left, err)
	}
	if err := checkOutputNotInput(link, name); !errors.As(err, &exit) || exit.code != exitUsage {
		t.Errorf("the input behind a link: %v", err)
	}
	if err := checkOutputNotInput(filepath.Join(dir, "another"), name); err != nil {
		t.Error(err)
	}
}

// TestJourneyReadsProfileFiles: a file that cannot be read is refused before anything is raised.
func TestJourneyReadsProfileFiles(t *testing.T) {
	if code, stdout, stderr := command("journey", "canal,./none.yaml"); code != exitUsage || stdout != "" || !strings.Contains(stderr, "none.yaml: cannot be read") {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
}
