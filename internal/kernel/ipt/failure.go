package ipt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Both flavours and ipset name the line, each in its own words: "line 7 failed", "line 7: RULE_APPEND failed",
// "Error occurred at line: 7", "Error in line 7".
var lineNumber = regexp.MustCompile(`(?i)\bline:? (\d+)`)

// shown limits what of a long line or of a long complaint goes into the message, in bytes.
const shown = 400

const tooLong = "the nft flavour hands all rules of a table over in one message, and without the rights of the machine's root the kernel " +
	"limits it to net.core.wmem_max: run as root, raise that sysctl, use the legacy flavour, or fewer Services"

// refused returns the error for a program that failed over input: the program, how it ended, the line that it refused
// if it named one, and its complaint.
func refused(program, input, stderr string, err error) error {
	complaint := clip(strings.Join(strings.Fields(stderr), " "))
	if m := lineNumber.FindStringSubmatch(stderr); m != nil {
		lines := strings.Split(input, "\n")
		if n, convErr := strconv.Atoi(m[1]); convErr == nil && n >= 1 && n <= len(lines) {
			err = fmt.Errorf("%w at line %d %q", err, n, clip(lines[n-1]))
		}
	}
	err = fmt.Errorf("%s: %w: %s", program, err, complaint)
	if strings.Contains(complaint, "Message too long") {
		return advice.With(err, tooLong)
	}
	return err
}

func clip(s string) string {
	if len(s) <= shown {
		return s
	}
	return s[:shown] + "..."
}
