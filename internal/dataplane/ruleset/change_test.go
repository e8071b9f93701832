package ruleset

import "testing"

func TestChange(t *testing.T) {
	before, after := New(), New()
	for _, r := range []*Ruleset{before, after} {
		r.Table(NAT).Chain("same").Append("-j ACCEPT")
		r.Table(Filter).Chain("declared") // by a jump of either side
	}
	before.Table(Filter).Chain("dispatch").Append("-g old")
	before.Table(Filter).Chain("old").Append("-j DROP")
	after.Table(Filter).Chain("dispatch").Append("-g new")
	after.Table(Filter).Chain("new").Append("-j standing")
	after.Table(Filter).Chain("standing")
	after.Table(Filter).Chain("FORWARD").Append("-j dispatch")
	want := `*filter
-F FORWARD
:dispatch - [0:0]
:new - [0:0]
:old - [0:0]
-A FORWARD -j dispatch
-A dispatch -g new
-A new -j standing
-X old
COMMIT
`
	if got := Change(before, after); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Change(after, after); got != "" {
		t.Errorf("no change is %q", got)
	}
}
