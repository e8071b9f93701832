package strace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	table := filepath.Join(t.TempDir(), "calls")
	if _, err := SystemCalls(table); err == nil {
		t.Error("there is no table, and no error")
	}
	for _, c := range []struct {
		text string
		want map[string]uint64
	}{
		{`    calls syscall
--------- ----------------
    12681 ???(
     1121 accept4
     1121 recvfrom
        3 newfstatat
--------- ----------------
    14926 total
`, map[string]uint64{"accept4": 1121, "recvfrom": 1121, "newfstatat": 3}},
		{"    calls syscall\n--------- ---\n       12 ???(\n--------- ---\n       12 total\n", nil},
		{"", nil},
	} {
		if err := os.WriteFile(table, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := SystemCalls(table)
		if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want != nil) {
			t.Errorf("%s%v", diff, err)
		}
	}
}
