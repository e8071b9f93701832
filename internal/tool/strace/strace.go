// Package strace counts the system calls of a program by strace, which must be installed.
package strace

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Counted returns what a command line begins with for its program to be counted in a table.
func Counted(table string) []string {
	return []string{"strace", "-f", "-c", "-U", "calls,name", "-o", table}
}

// SystemCalls returns how often each system call was made, from the table of Counted. It fails if the table is missing or
// empty. strace also counts stops that it cannot decode, as "???(": they are not system calls, and a busy machine has ten of
// them per transaction.
func SystemCalls(table string) (map[string]uint64, error) {
	b, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	calls := map[string]uint64{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 || fields[1] == "total" || strings.HasPrefix(fields[1], "?") {
			continue
		}
		if n, err := strconv.ParseUint(fields[0], 10, 64); err == nil {
			calls[fields[1]] = n
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%s: no call was counted", table)
	}
	return calls, nil
}
