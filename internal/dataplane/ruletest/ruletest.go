// Package ruletest finds faults in rules that were not loaded yet, for tests: what iptables would reject or
// misinterpret, and chains that no packet reaches.
package ruletest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// quoted matches the comment of a rule, which may contain words that look like options.
var quoted = regexp.MustCompile(`"[^"]*"`)

// Target returns the chain or built-in target of a rule of iptables: the word after -j or -g. It returns "" for a rule that
// only counts.
func Target(rule string) string {
	words := strings.Fields(quoted.ReplaceAllString(rule, " "))
	for i, w := range words {
		if (w == "-j" || w == "-g") && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// targets are the built-in targets of rules.
const targets = " ACCEPT DROP RETURN REJECT MARK CONNMARK MASQUERADE SNAT DNAT NOTRACK CT NFLOG "

// maxChainName is the maximum length of a chain's name in iptables, in bytes.
const maxChainName = 28

// Check returns all faults of a ruleset, joined into one error: long names of chains, jumps to undeclared chains, and rules
// that iptables-restore cannot read.
func Check(r *ruleset.Ruleset) error {
	var errs []error
	for _, t := range r.Tables() {
		jumpable := map[string]bool{"": true}
		for _, c := range t.Chains() {
			jumpable[c.Name] = !c.Builtin
			if len(c.Name) > maxChainName {
				errs = append(errs, fmt.Errorf("table %s: chain name %q has %d bytes, more than %d", t.Name, c.Name, len(c.Name), maxChainName))
			}
		}
		for _, c := range t.Chains() {
			for _, rule := range c.Rules() {
				to := Target(rule)
				switch {
				case rule == "" || strings.ContainsAny(rule, "\n\r\x00") || strings.Count(rule, `"`)%2 != 0:
					errs = append(errs, fmt.Errorf("table %s: chain %s: rule %q is empty or has a line break or open quote", t.Name, c.Name, rule))
				case !jumpable[to] && !strings.Contains(targets, " "+to+" "):
					errs = append(errs, fmt.Errorf("table %s: chain %s: rule %q: target %q is neither a declared chain nor a known target", t.Name, c.Name, rule, to))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// Unreachable returns the name, as "table/chain", of every chain to which no built-in chain leads, directly or through
// others.
func Unreachable(r *ruleset.Ruleset) []string {
	var lost []string
	for _, t := range r.Tables() {
		g := graph{}
		for _, c := range t.Chains() {
			var to []string
			for _, rule := range c.Rules() {
				to = append(to, Target(rule))
			}
			g = append(g, node{name: t.Name + "/" + c.Name, key: c.Name, start: c.Builtin, to: to})
		}
		lost = append(lost, g.unreachableChains()...)
	}
	return lost
}

var (
	block = regexp.MustCompile(`(?m)^\t(chain|set|map) (\S+) \{\n((?:\t\t.*\n)*)\t\}`)
	way   = regexp.MustCompile(`(jump |goto |vmap @)([^\s,}]+)`)
)

// UnreachableNFT returns the names of the chains of a table to which no base chain leads, directly, through other chains or
// through maps.
func UnreachableNFT(t *nft.Table) []string {
	var g graph
	for _, b := range block.FindAllStringSubmatch(t.String(), -1) {
		n := node{key: b[1] + " " + b[2], start: strings.HasPrefix(b[3], "\t\ttype ") && b[1] == "chain"}
		if b[1] == "chain" {
			n.name = b[2]
		}
		for _, w := range way.FindAllStringSubmatch(b[3], -1) {
			kind := "chain "
			if w[1] == "vmap @" {
				kind = "map "
			}
			n.to = append(n.to, kind+w[2])
		}
		g = append(g, n)
	}
	return g.unreachableChains()
}

// graph has the chains of a table, and the maps between them, in the order of declaration.
type graph []node

// node is a chain or a map of a table.
type node struct {
	// name is the name of a chain, "" for a map. key identifies the node.
	name, key string
	// start is true for a chain that the kernel calls.
	start bool
	// to has the keys of the nodes to which the node leads.
	to []string
}

func (g graph) unreachableChains() []string {
	seen := map[string]bool{}
	var walk func(key string)
	walk = func(key string) {
		if seen[key] {
			return
		}
		seen[key] = true
		for _, n := range g {
			if n.key == key {
				for _, to := range n.to {
					walk(to)
				}
			}
		}
	}
	for _, n := range g {
		if n.start {
			walk(n.key)
		}
	}
	var lost []string
	for _, n := range g {
		if n.name != "" && !seen[n.key] {
			lost = append(lost, n.name)
		}
	}
	return lost
}
