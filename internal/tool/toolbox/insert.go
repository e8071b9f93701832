// Package toolbox has what the campaigns of maintainers share: tables in documents, and work that disturbs a run as others on a
// shared machine do.
package toolbox

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Table replaces what stands in a document between the two comments of a campaign, <!-- NAME: written by make NAME --> and
// <!-- end of NAME -->, and says below which version the campaign's program is. The error says that the document cannot be read or
// written, or lacks the comments, or that the program does not know its version.
func Table(document, name, program, table string) error {
	before, _, after, err := parts(document, name)
	if err != nil {
		return err
	}
	version, err := exec.Command(program, "version").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", program, err)
	}
	return os.WriteFile(document, fmt.Appendf(nil, "%s\n%s\nWritten by `%s`.\n\n%s", before, table, strings.TrimSpace(string(version)), after), 0o644)
}

// Read returns what is between these comments.
func Read(document, name string) (table string, err error) {
	_, table, _, err = parts(document, name)
	return table, err
}

// parts are the text up to and with the first comment, what stands between, and the rest.
func parts(document, name string) (before, table, after string, err error) {
	begin, end := fmt.Sprintf("<!-- %s: written by make %[1]s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	text, err := os.ReadFile(document)
	if err != nil {
		return "", "", "", err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("%s: no table of %s between %q and %q", document, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin, table, end + after, nil
}
