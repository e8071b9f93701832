package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// verifierLogs is an environment that BPF programs are loaded in.
type verifierLogs interface {
	// VerifierLogs returns what the kernel's verifier said of programs that it refused, by the profile that lacks them.
	VerifierLogs() map[string]string
}

// tellVerifier says which profiles lack a program that the verifier refused; verbose says why, in every line of its.
func tellVerifier(w io.Writer, logs map[string]string, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		if !verbose {
			fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program; add -v for its whole log\n", name)
			continue
		}
		fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program:\n%s\n", name, strings.TrimRight(logs[name], "\n"))
	}
}
