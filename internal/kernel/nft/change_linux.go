package nft

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Patch is one transaction that changes the kernel's table from one state to another. It can be committed repeatedly.
type Patch struct {
	table   string
	batch   batch
	message []byte
}

// Difference returns the transaction that turns before into after. It returns nil if nothing changes, and fails if
// after is invalid. It rewrites chains whose rules differ, and adds and removes single elements, as the agents of a
// node do. It adds new sets but deletes none, and ignores the elements of interval sets. Parts of the kernel's table
// that are in neither table stay.
func Difference(before, after *Table) (*Patch, error) {
	if err := after.Check(); err != nil {
		return nil, err
	}
	l := &loader{ctx: context.Background(), table: after, shared: map[string]string{}, tableExists: true}
	b := &l.batch
	for _, s := range after.sets {
		if before.setOf[s.Name] == nil {
			l.id++
			b.declareSet(after, s, l.id)
		}
	}
	var changed []*Chain
	for _, c := range after.chains {
		was := before.chainOf[c.Name]
		if was == nil {
			b.declareChain(after, c)
		}
		if was == nil && len(c.Rules) > 0 || was != nil && !slices.EqualFunc(was.Rules, c.Rules, Rule.equal) {
			changed = append(changed, c)
		}
	}
	for _, c := range changed {
		if before.chainOf[c.Name] != nil {
			b.deleteRules(after, c.Name)
		}
		for i := range c.Rules {
			if err := l.batchRule(c, i); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range after.sets {
		if !s.Interval {
			b.changeElements(after, before.setOf[s.Name], s)
		}
	}
	b.deleteChains(before, after)
	if b.isEmpty() {
		return nil, nil
	}
	messages := b.finish() // it advances the sequence that the patch copies
	return &Patch{after.Name, *b, messages}, nil
}

// Commit applies p in ns. If the kernel refuses a part, the error names the part, and nothing is changed.
func (p *Patch) Commit(ns *netns.NS) error {
	s, err := dial(ns)
	if err != nil {
		return err
	}
	defer s.close()
	s.enlargeBuffer(len(p.message))
	refusal, err := s.commit(p.message, p.batch.start, p.batch.sequence-1)
	switch {
	case err != nil:
		return fmt.Errorf("nftables: change table %s: %w", p.table, err)
	case refusal != nil:
		return fmt.Errorf("nftables: change table %s: %s: %w", p.table, p.batch.describeMessage(refusal.sequence), refusal.number)
	}
	return nil
}

func (r Rule) equal(other Rule) bool { return r.String() == other.String() }

// deleteRules deletes the rules of a chain.
func (b *batch) deleteRules(t *Table, chain string) {
	b.beginMessage(unix.NFT_MSG_DELRULE, 0, t.Family, func() string { return "rules of chain " + chain })
	b.putText(unix.NFTA_RULE_TABLE, t.Name)
	b.putText(unix.NFTA_RULE_CHAIN, chain)
	b.endMessage()
}

// changeElements changes the elements of a set from before to after. It adds and deletes elements, and replaces those
// with another verdict. before is nil for a new set.
func (b *batch) changeElements(t *Table, before, after *Set) {
	old := map[string]Element{}
	if before != nil {
		for _, e := range before.Elements {
			old[string(keyBytes(e.Key))] = e
		}
	}
	var added []Element
	for _, e := range after.Elements {
		key := string(keyBytes(e.Key))
		was, known := old[key]
		delete(old, key)
		if known && was.Verdict == e.Verdict {
			continue
		}
		if known {
			b.deleteElement(t, after, was)
		}
		added = append(added, e)
	}
	for _, e := range old {
		b.deleteElement(t, after, e)
	}
	for done := 0; done < len(added); {
		done += b.addElements(t, after.Name, 0, len(added)-done, func(i int) {
			b.putKey(keyBytes(added[done+i].Key))
			if after.Map {
				b.putVerdict(added[done+i].Verdict)
			}
		})
	}
}

func (b *batch) deleteElement(t *Table, s *Set, e Element) {
	b.beginMessage(unix.NFT_MSG_DELSETELEM, 0, t.Family, func() string { return "an element of set " + s.Name })
	b.putText(unix.NFTA_SET_ELEM_LIST_TABLE, t.Name)
	b.putText(unix.NFTA_SET_ELEM_LIST_SET, s.Name)
	list := b.beginAttribute(unix.NFTA_SET_ELEM_LIST_ELEMENTS | nested)
	at := b.beginAttribute(unix.NFTA_LIST_ELEM | nested)
	b.putKey(keyBytes(e.Key))
	b.endAttribute(at)
	b.endAttribute(list)
	b.endMessage()
}

// deleteChains deletes the chains that after does not have. It flushes all of them first, since they may refer to
// each other.
func (b *batch) deleteChains(before, after *Table) {
	gone := slices.DeleteFunc(before.Chains(), func(c *Chain) bool { return after.chainOf[c.Name] != nil })
	for _, c := range gone {
		b.deleteRules(after, c.Name)
	}
	for _, c := range gone {
		b.beginMessage(unix.NFT_MSG_DELCHAIN, 0, after.Family, func() string { return "chain " + c.Name + " to be deleted" })
		b.putText(unix.NFTA_CHAIN_TABLE, after.Name)
		b.putText(unix.NFTA_CHAIN_NAME, c.Name)
		b.endMessage()
	}
}
