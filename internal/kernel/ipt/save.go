package ipt

import (
	"fmt"
	"strconv"
	"strings"
)

// SavedTable is one table as iptables-save prints it.
type SavedTable struct {
	Name   string
	Chains []SavedChain
}

// SavedChain is one chain with its rules from the top.
type SavedChain struct {
	Name string
	// Policy is "ACCEPT" or "DROP" for a chain that the kernel calls, "-" for any other.
	Policy string
	// Packets and Bytes count what the policy decided; always 0 for a chain without one.
	Packets, Bytes uint64
	Rules          []Counter
}

// Counter is a rule with what has matched it since it was loaded.
type Counter struct {
	// Rule is the text behind "-A chain".
	Rule           string
	Packets, Bytes uint64
}

// ParseSave reads the output of iptables-save, with or without -c. Comments are skipped; anything else that it does not
// know is an error that names the line.
func ParseSave(text string) ([]SavedTable, error) {
	var p saveParser
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if err := p.line(line); err != nil {
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
	// open says that the last table is not committed yet; chains indexes it by name.
	open   bool
	chains map[string]int
}

func (p *saveParser) line(line string) error {
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
	case line[0] == ':':
		return p.chain(line[1:])
	default:
		return p.rule(line)
	}
}

func (p *saveParser) chain(line string) error {
	words := strings.Fields(line)
	if len(words) != 3 {
		return fmt.Errorf("want a chain as :name policy [packets:bytes]")
	}
	packets, bytes, err := parseCounters(words[2])
	if err != nil {
		return err
	}
	if _, twice := p.chains[words[0]]; twice {
		return fmt.Errorf("chain %s is declared twice", words[0])
	}
	t := &p.tables[len(p.tables)-1]
	p.chains[words[0]] = len(t.Chains)
	t.Chains = append(t.Chains, SavedChain{Name: words[0], Policy: words[1], Packets: packets, Bytes: bytes})
	return nil
}

func (p *saveParser) rule(line string) error {
	var c Counter
	if line[0] == '[' {
		counters, rest, _ := strings.Cut(line, " ")
		var err error
		if c.Packets, c.Bytes, err = parseCounters(counters); err != nil {
			return err
		}
		line = rest
	}
	rest, ok := strings.CutPrefix(line, "-A ")
	if !ok {
		return fmt.Errorf("want a rule that begins with -A and a chain")
	}
	name, rule, _ := strings.Cut(rest, " ")
	i, ok := p.chains[name]
	if !ok {
		return fmt.Errorf("chain %q is not declared", name)
	}
	c.Rule = rule
	t := &p.tables[len(p.tables)-1]
	t.Chains[i].Rules = append(t.Chains[i].Rules, c)
	return nil
}

// parseCounters reads "[packets:bytes]".
func parseCounters(text string) (packets, bytes uint64, err error) {
	inner, ok := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	a, b, colon := strings.Cut(inner, ":")
	if !ok || !closed || !colon {
		return 0, 0, fmt.Errorf("want counters as [packets:bytes], have %q", text)
	}
	if packets, err = strconv.ParseUint(a, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("packets: %w", err)
	}
	if bytes, err = strconv.ParseUint(b, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("bytes: %w", err)
	}
	return packets, bytes, nil
}
