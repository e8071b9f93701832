package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// printVerifierLogs names the profiles whose BPF program the verifier refused; verbose prints its log.
func printVerifierLogs(w io.Writer, logs map[string]string, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		if !verbose {
			fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program; -v prints its log\n", name)
			continue
		}
		fmt.Fprintf(w, "cnibench: %s: the kernel's verifier refused a program:\n%s\n", name, strings.TrimRight(logs[name], "\n"))
	}
}
