package plan

import (
	"bytes"
	"os"
	"testing"
)

func TestReferenceIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := WriteReference(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/reference-workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/reference-workloads.md is not what the options say; run make generate")
	}
}
