package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestLostRunIsToldHowToGoOn: the advice is a command that leads to the same cluster, after what the error itself advises.
func TestLostRunIsToldHowToGoOn(t *testing.T) {
	a := &runArgs{output: "r.jsonl"}
	for _, tt := range []struct {
		err        error
		kubeconfig string
		want       string
	}{
		{nil, "", ""},
		{errors.New("disk full"), "", ""},
		{&run.LostError{Err: errors.New("pod gone")}, "", "finished trials are kept; when the cluster is ready again, resume: cnibench run --resume -o r.jsonl"},
		{fmt.Errorf("x: %w", &run.LostError{Err: advice.With(errors.New("401"), "log in again")}), "/k",
			"log in again; finished trials are kept; when the cluster is ready again, resume: cnibench run --resume -o r.jsonl --kubeconfig /k"},
	} {
		p := &program{stderr: &bytes.Buffer{}, kubeconfig: tt.kubeconfig}
		err := p.withResumeHint(a, tt.err)
		if (err == nil) != (tt.err == nil) || !errors.Is(err, tt.err) || advice.Of(err) != tt.want {
			t.Errorf("%v: hint %q, want %q", tt.err, advice.Of(err), tt.want)
		}
	}
}
