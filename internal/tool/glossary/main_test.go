package main

import (
	"os"
	"testing"
)

func TestGlossaryIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("docs/reference/glossary.md is not what the catalogue says; run make generate")
	}
}
