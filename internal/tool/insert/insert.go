// Package insert puts what a campaign measured into a document.
package insert

import (
	"fmt"
	"os"
	"strings"
)

// Table replaces what stands in a document between the two comments of a campaign, <!-- NAME: written by make NAME --> and
// <!-- end of NAME -->. The error says that the document cannot be read or written, or lacks them.
func Table(document, name, table string) error {
	before, _, after, err := parts(document, name)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+"\n"+table+"\n"+after), 0o644)
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
