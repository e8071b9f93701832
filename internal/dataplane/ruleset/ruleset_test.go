package ruleset

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestRenderedOrder(t *testing.T) {
	r := New()
	filter := r.Table(Filter)
	filter.Chain("FORWARD").Append("-j LATE").Insert("-j FIRST").Insert("-j SECOND")
	filter.Chain("LATE").Append("-j ACCEPT")
	filter.Chain("FIRST")
	filter.Chain("SECOND")
	r.Table(Mangle).Chain("CANARY")
	want := `*mangle
:CANARY - [0:0]
COMMIT
*filter
:FORWARD ACCEPT [0:0]
:LATE - [0:0]
:FIRST - [0:0]
:SECOND - [0:0]
-A FORWARD -j SECOND
-A FORWARD -j FIRST
-A FORWARD -j LATE
-A LATE -j ACCEPT
COMMIT
`
	if got := r.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestInsertAppendIsAList compares a chain with the plain list that iptables' -I 1 and -A act on.
func TestInsertAppendIsAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := New().Table(NAT).Chain("X")
		var model []string
		for i := range rnd.IntN(30) {
			rule := "-m mark --mark " + strconv.Itoa(i)
			if rnd.IntN(2) == 0 {
				c.Insert(rule)
				model = slices.Insert(model, 0, rule)
			} else {
				c.Append(rule)
				model = append(model, rule)
			}
		}
		if !slices.Equal(c.Rules(), model) {
			t.Fatalf("got %q, want %q", c.Rules(), model)
		}
	}
}

func TestNothingInNothingOut(t *testing.T) {
	r := New()
	r.Table(Filter).Chain("FORWARD")
	if got := r.String(); got != "" {
		t.Errorf("an untouched ruleset renders %q", got)
	}
	if names := r.Tables(); len(names) != 4 {
		t.Errorf("%d tables, want 4", len(names))
	}
}

func TestUnknownTablePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a table that does not exist")
		}
	}()
	New().Table("security")
}
