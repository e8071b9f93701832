// Command reference writes the documentation of the formats, for readers and editors, into a directory of documents:
// the references of commands, settings, workloads and profile files, the glossary, and the JSON Schemas. It also writes
// the generated files of a directory of files to deploy. `make generate` runs it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/deploy"
	"github.com/cnibench/cnibench/internal/report/schema"
)

func main() {
	if len(os.Args) != 3 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: reference DOCS DEPLOY: two directories")
		os.Exit(2)
	}
	err := writeAll(os.Args[1])
	if err == nil {
		_, err = deploy.Write(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// pages are the generated pages by their path below docs.
var pages = func() map[string]func(io.Writer) error {
	all := map[string]func(io.Writer) error{"reference/workloads.md": writeWorkloads, "reference/settings.md": writeSettings, "reference/commands.md": writeCommands, "reference/profile-files.md": writeProfileFiles, "reference/glossary.md": writeGlossary}
	for _, name := range schema.Names {
		all["schema/"+name+".json"] = func(w io.Writer) error { return schema.Write(w, name) }
	}
	return all
}()

func writeAll(docs string) error {
	for name, write := range pages {
		path := filepath.Join(docs, name)
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
