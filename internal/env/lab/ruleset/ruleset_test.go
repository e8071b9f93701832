package ruleset

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
	if err := r.Check(); err != nil {
		t.Error(err)
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

func TestTarget(t *testing.T) {
	tests := map[string]string{
		"-j ACCEPT":                             "ACCEPT",
		"-i cali+ -g cali-x":                    "cali-x",
		`-m comment --comment "go -j NOWHERE"`:  "",
		`-m comment --comment "a -j B" -j C`:    "C",
		"-m recent --set --name x":              "",
		"-j":                                    "",
		"--jump DROP":                           "DROP",
		"-s 10.0.0.0/8 --goto KUBE-SVC-1 -x 12": "KUBE-SVC-1",
	}
	for rule, want := range tests {
		if got := Target(rule); got != want {
			t.Errorf("Target(%q) = %q, want %q", rule, got, want)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	tests := map[string]struct {
		chain, rule, finds string
	}{
		"undeclared chain":     {"X", "-j NOWHERE", `"NOWHERE"`},
		"built-in as a target": {"X", "-j INPUT", `"INPUT"`},
		"line break":           {"X", "-j DROP\n-A X -j ACCEPT", "line break"},
		"open quote":           {"X", `-m comment --comment "x -j DROP`, "open quote"},
		"empty":                {"X", "", "empty"},
		"long name":            {strings.Repeat("x", MaxChainName+1), "-j DROP", "29 bytes"},
	}
	for name, tt := range tests {
		r := New()
		r.Table(Filter).Chain(tt.chain).Append(tt.rule)
		err := r.Check()
		if err == nil || !strings.Contains(err.Error(), tt.finds) {
			t.Errorf("%s: Check says %v, want something about %q", name, err, tt.finds)
		}
	}
	r := New()
	r.Table(Filter).Chain(strings.Repeat("x", MaxChainName)).Append("-j DROP")
	if err := r.Check(); err != nil {
		t.Errorf("the longest name that iptables takes is refused: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	r := New()
	nat := r.Table(NAT)
	nat.Chain("OUTPUT").Append("-j A")
	nat.Chain("A").Append("-g B")
	nat.Chain("B").Append("-j A") // a loop must not hang the walk
	nat.Chain("LONELY").Append("-j ALSO-LONELY")
	nat.Chain("ALSO-LONELY")
	want := []string{"nat/LONELY", "nat/ALSO-LONELY"}
	if got := r.Unreachable(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
