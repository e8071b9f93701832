package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Check finds what the kernel would refuse or silently misinterpret. Examples are names that are too long, undeclared
// chains and sets, and keys of the wrong shape. It returns the faults of all sets and rules in one error.
func (t *Table) Check() error {
	var errs []error
	for _, s := range t.sets {
		if err := t.checkSet(s); err != nil {
			errs = append(errs, fmt.Errorf("table %s: set %s: %w", t.Name, s.Name, err))
		}
	}
	for _, c := range t.chains {
		if !isValidName(c.Name) {
			errs = append(errs, fmt.Errorf("table %s: chain name %q is empty, longer than %d bytes or not printable", t.Name, c.Name, MaxName))
		}
		for i, r := range c.Rules {
			for _, term := range r {
				if err := t.checkTerm(term); err != nil {
					errs = append(errs, fmt.Errorf("table %s: chain %s: rule %d, %q: %w", t.Name, c.Name, i+1, r.text(t.Family), err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func isValidName(name string) bool {
	bad := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"{};:@%`, r) }
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, bad)
}

func (t *Table) checkSet(s *Set) error {
	switch {
	case !isValidName(s.Name):
		return fmt.Errorf("the name is empty, longer than %d bytes or not printable", MaxName)
	case len(s.Key) == 0 || s.Interval && len(s.Key) > 1:
		return fmt.Errorf("a key of %d parts", len(s.Key))
	}
	if p, q, bad := overlappingPrefixes(s); bad {
		return fmt.Errorf("the prefixes %v and %v overlap", p, q)
	}
	for _, e := range s.Elements {
		if len(e.Key) != len(s.Key) {
			return fmt.Errorf("element %q does not have %d parts", e.text(t.Family), len(s.Key))
		}
		for i, v := range e.Key {
			if err := t.checkValue(s.Key[i], v); err != nil {
				return err
			}
			if _, isPrefix := v.(netip.Prefix); isPrefix != s.Interval {
				return fmt.Errorf("element %q: prefixes are for interval sets, and these hold nothing else", e.text(t.Family))
			}
		}
		if s.Map != (e.Verdict != Verdict{}) {
			return fmt.Errorf("element %q: maps have verdicts, sets have none", e.text(t.Family))
		}
		if err := t.checkTerm(e.Verdict); err != nil {
			return fmt.Errorf("element %q: %w", e.text(t.Family), err)
		}
	}
	return nil
}

// overlappingPrefixes returns two overlapping prefixes of an interval set, if there are any. It sorts the prefixes: two
// neighbours overlap if any two do.
func overlappingPrefixes(s *Set) (p, q netip.Prefix, found bool) {
	var list []netip.Prefix
	for _, e := range s.Elements {
		if p, ok := e.Key[0].(netip.Prefix); ok && p.IsValid() {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		if c := a.Masked().Addr().Compare(b.Masked().Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	for i := 1; i < len(list); i++ {
		if list[i-1].Overlaps(list[i]) {
			return list[i-1], list[i], true
		}
	}
	return p, q, false
}

func (t *Table) checkValue(typ Type, v Value) error {
	ok := false
	switch v := v.(type) {
	case netip.Addr:
		ok = t.allowsAddr(typ, v)
	case netip.Prefix:
		ok = t.allowsAddr(typ, v.Addr())
	case L4:
		_, known := protocols[v]
		ok = typ == Proto && known
	case uint16:
		ok = typ == Port
	case uint8:
		ok = typ == ICMPType
	case string:
		ok = typ == Device && v != "" && len(v) < 16
	}
	if !ok {
		return fmt.Errorf("%s is not a value of type %s", valueText(v), typ.shape(t.Family).name)
	}
	return nil
}

// allowsAddr reports whether a can be a value of typ in this table.
func (t *Table) allowsAddr(typ Type, a netip.Addr) bool {
	return a.IsValid() && (typ == Addr || typ == Addr6 && t.Family == Inet) && typ.shape(t.Family).size == len(a.AsSlice())
}

func (t *Table) checkTerm(term Term) error {
	for _, c := range targetChains(term) {
		to := t.chainOf[c]
		if to == nil || to.Hook != nil {
			return fmt.Errorf("leads to %q, which is not a declared chain to jump to", c)
		}
	}
	switch term := term.(type) {
	case compare:
		return t.checkValue(fields[term.field].typ, term.value)
	case lookup:
		return t.checkLookup(term.set, term.key, term.vmap)
	case offload:
		if !slices.ContainsFunc(t.flowtables, func(f *Flowtable) bool { return f.Name == string(term) }) {
			return fmt.Errorf("offloads into %q, which is not a declared flowtable", string(term))
		}
	case update:
		return t.checkLookup(term.set, []Field{term.of}, false)
	case comment:
		if len(term) > MaxComment || strings.ContainsAny(string(term), "\"\n\x00") {
			return fmt.Errorf("comment of %d bytes, more than %d, or with a quote or line break", len(term), MaxComment)
		}
	case dnat:
		for _, to := range term.to {
			if err := t.checkValue(Addr, to.Addr()); err != nil {
				return err
			}
		}
		if len(term.to) == 0 {
			return errors.New("nothing to translate to")
		}
	}
	return nil
}

func (t *Table) checkLookup(set string, key []Field, vmap bool) error {
	s := t.setOf[set]
	if s == nil || s.Map != vmap {
		return fmt.Errorf("looks into %q, which is not a declared set or map", set)
	}
	if !slices.Equal(each.Of(key, func(f Field) Type { return fields[f].typ }), s.Key) {
		return fmt.Errorf("the key does not fit %q", set)
	}
	return nil
}

// targetChains returns the chains to which a term may send a packet, without the chains in maps.
func targetChains(term Term) []string {
	switch term := term.(type) {
	case Verdict:
		if term.chain != "" {
			return []string{term.chain}
		}
	case gotoRandom:
		return term
	}
	return nil
}
