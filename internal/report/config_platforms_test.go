package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// TestPlatforms holds what is said of the configurations of platforms in golden files.
func TestPlatforms(t *testing.T) {
	const folder = "../judge/config/testdata/platforms"
	files, err := os.ReadDir(folder)
	if err != nil || len(files) < 12 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := config.Check([]config.Input{{Name: f.Name(), Text: string(text)}}, config.Known{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := renderers["txt"](&b, report.BuildConfig(r)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "config/"+f.Name()+".txt", b.Bytes())
	}
}
