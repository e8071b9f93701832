package ruleset

import (
	"errors"
	"fmt"
	"strings"
)

// Target returns the chain or built-in target of a rule, the word after -j or -g. It is "" for a rule that only counts.
func Target(rule string) string {
	words := strings.Fields(unquoted(rule))
	for i, w := range words {
		if (w == "-j" || w == "-g" || w == "--jump" || w == "--goto") && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// unquoted removes text in double quotes, because comments may contain words that look like options.
func unquoted(rule string) string {
	if !strings.Contains(rule, `"`) {
		return rule
	}
	parts := strings.Split(rule, `"`)
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString(parts[i])
		b.WriteByte(' ')
	}
	return b.String()
}

// targets are the built-in targets of rules.
var targets = map[string]bool{
	"ACCEPT": true, "DROP": true, "RETURN": true, "REJECT": true, "MARK": true, "MASQUERADE": true, "DNAT": true,
	"SNAT": true, "NOTRACK": true, "CT": true, "DSCP": true, "LOG": true, "NFLOG": true,
}

// Check finds faults that iptables would reject or misinterpret: long names, jumps to undeclared chains, and rules that
// restore input cannot contain. It returns all faults joined.
func (r *Ruleset) Check() error {
	var errs []error
	for _, t := range r.tables {
		for _, c := range t.chains {
			if len(c.Name) > MaxChainName {
				errs = append(errs, fmt.Errorf("table %s: chain name %q has %d bytes, more than %d", t.Name, c.Name, len(c.Name), MaxChainName))
			}
			for _, rule := range c.Rules() {
				if err := t.checkRule(rule); err != nil {
					errs = append(errs, fmt.Errorf("table %s: chain %s: %w", t.Name, c.Name, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (t *Table) checkRule(rule string) error {
	if rule == "" || strings.ContainsAny(rule, "\n\r\x00") || strings.Count(rule, `"`)%2 != 0 {
		return fmt.Errorf("rule %q is empty or has a line break or open quote", rule)
	}
	to := Target(rule)
	if to == "" || targets[to] {
		return nil
	}
	if c, ok := t.byName[to]; !ok || c.Builtin {
		return fmt.Errorf("rule %q: target %q is neither a declared chain nor a known target", rule, to)
	}
	return nil
}

// Unreachable returns "table/chain" of every chain that no built-in chain leads to, directly or through others, in
// rendering order.
func (r *Ruleset) Unreachable() []string {
	var out []string
	for _, t := range r.tables {
		seen := map[*Chain]bool{}
		for _, c := range t.chains {
			if c.Builtin {
				t.walk(c, seen)
			}
		}
		for _, c := range t.chains {
			if !seen[c] {
				out = append(out, t.Name+"/"+c.Name)
			}
		}
	}
	return out
}

func (t *Table) walk(c *Chain, seen map[*Chain]bool) {
	if seen[c] {
		return
	}
	seen[c] = true
	for _, rule := range c.Rules() {
		if next, ok := t.byName[Target(rule)]; ok {
			t.walk(next, seen)
		}
	}
}
