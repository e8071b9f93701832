package main

import (
	"bytes"
	"io"
	"os"
	"testing"
)

func TestReferencesAreCurrent(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{"workloads": writeWorkloads, "settings": writeSettings, "commands": writeCommands, "profile-files": writeProfileFiles, "glossary": writeGlossary} {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../docs/reference/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/reference/%s.md differs from the code: run make generate", name)
		}
	}
}
