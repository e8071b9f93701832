package ipt

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// SavedTable is one table in the output of iptables-save.
type SavedTable struct {
	Name   string
	Chains []SavedChain
}

// SavedChain is one chain with its rules, in order.
type SavedChain struct {
	Name string
	// Policy is "ACCEPT" or "DROP" for a built-in chain, "-" for any other chain.
	Policy string
	// Packets counts the packets that the policy decided; always 0 for a chain without a policy.
	Packets uint64
	Rules   []Counter
}

// Counter is a rule with the number of packets that matched it since it was loaded.
type Counter struct {
	// Rule is the text after "-A chain".
	Rule    string
	Packets uint64
}

// ParseSave parses the output of iptables-save, with or without -c. It skips comments; any other unknown line is an
// error.
func ParseSave(text string) ([]SavedTable, error) {
	var p saveParser
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if err := p.parseLine(line); err != nil {
			return nil, fmt.Errorf("iptables-save output, line %d %q: %w", i+1, line, err)
		}
	}
	if p.open {
		return nil, fmt.Errorf("iptables-save output: table %s ends without COMMIT", p.tables[len(p.tables)-1].Name)
	}
	return p.tables, nil
}

type saveParser struct {
	tables []SavedTable
	// open means that the COMMIT of the last table was not read yet.
	open bool
	// chains has the indexes of the last table's chains by name.
	chains map[string]int
}

func (p *saveParser) parseLine(line string) error {
	switch {
	case line == "" || line[0] == '#':
		return nil
	case line[0] == '*':
		if p.open || len(line) == 1 {
			return fmt.Errorf("a table begins where none can")
		}
		p.tables = append(p.tables, SavedTable{Name: line[1:]})
		p.open, p.chains = true, map[string]int{}
		return nil
	case !p.open:
		return fmt.Errorf("stands outside any table")
	case line == "COMMIT":
		p.open = false
		return nil
	}
	t := &p.tables[len(p.tables)-1]
	if m := chainLine.FindStringSubmatch(line); m != nil {
		packets, err := strconv.ParseUint(m[3], 10, 64)
		if err != nil {
			return fmt.Errorf("chain %s counts too far: %w", m[1], err)
		}
		if _, twice := p.chains[m[1]]; twice {
			return fmt.Errorf("chain %s is declared twice", m[1])
		}
		p.chains[m[1]] = len(t.Chains)
		t.Chains = append(t.Chains, SavedChain{Name: m[1], Policy: m[2], Packets: packets})
		return nil
	}
	m := ruleLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("want :chain policy [packets:bytes] or [packets:bytes] -A chain rule")
	}
	i, ok := p.chains[m[2]]
	if !ok {
		return fmt.Errorf("chain %q is not declared", m[2])
	}
	packets, err := strconv.ParseUint(cmp.Or(m[1], "0"), 10, 64)
	t.Chains[i].Rules = append(t.Chains[i].Rules, Counter{Rule: m[3], Packets: packets})
	return err
}

var (
	chainLine = regexp.MustCompile(`^:(\S+) (\S+) \[(\d+):\d+\]$`)
	ruleLine  = regexp.MustCompile(`^(?:\[(\d+):\d+\] )?-A (\S+) ?(.*)$`)
)

// lineNumber finds the number of the refused line in the output of a program: "line 7 failed", "line 7: RULE_APPEND
// failed", "Error occurred at line: 7", "Error in line 7".
var lineNumber = regexp.MustCompile(`(?i)\bline:? (\d+)`)

// maxShown is how many bytes of a long line or output an error shows.
const maxShown = 400

const tooLong = "the nft flavour hands all rules of a table over in one message, and without the rights of the machine's root the kernel " +
	"limits it to net.core.wmem_max: run as root, raise that sysctl, use the legacy flavour, or fewer Services"

// programError returns the error of a program that refused its input. It has the path of the program, err, stderr, and the
// refused line if stderr has its number.
func programError(program, input, stderr string, err error) error {
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
	if len(s) <= maxShown {
		return s
	}
	return s[:maxShown] + "..."
}
