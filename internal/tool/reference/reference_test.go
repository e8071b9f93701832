package main

import (
	"bytes"
	"os"
	"testing"
)

func TestReferencesAreCurrent(t *testing.T) {
	for name, write := range pages {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/%s differs from the code: run make generate", name)
		}
	}
}
