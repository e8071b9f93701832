package golden

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A failing Check fails its test, so the failures run in a test binary of their own: this one, started again in a
// directory where testdata is what the case says.
func TestCheck(t *testing.T) {
	if os.Getenv("GOLD_CHILD") != "" {
		Check(t, "page.txt", []byte("one\ntwo\n"))
		return
	}
	for _, c := range []struct {
		name   string
		golden string
		args   []string
		fails  bool
	}{
		{"same", "one\ntwo\n", nil, false},
		{"different", "one\nzwei\n", nil, true},
		{"shorter", "one\n", nil, true},
		{"missing", "", nil, true},
		{"updated", "zwei\n", []string{"-update"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			page := filepath.Join(dir, "testdata", "page.txt")
			if err := os.Mkdir(filepath.Dir(page), 0o777); err != nil {
				t.Fatal(err)
			}
			if c.golden != "" {
				if err := os.WriteFile(page, []byte(c.golden), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestCheck$"}, c.args...)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOLD_CHILD=1")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Fatalf("failed: %v, want %v\n%s", err != nil, c.fails, out)
			}
			got, err := os.ReadFile(page + ".got")
			if c.fails != (err == nil && string(got) == "one\ntwo\n") {
				t.Errorf("page.txt.got: %q, %v", got, err)
			}
			if c.fails && !strings.Contains(string(out), "-update") {
				t.Errorf("the way out is not named: %s", out)
			}
		})
	}
}
