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
	begin, end := fmt.Sprintf("<!-- %s: written by make %[1]s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: no table of %s between %q and %q", document, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(document, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644)
}
