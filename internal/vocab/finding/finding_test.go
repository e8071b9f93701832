package finding

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	fs := []Finding{{ID: "a", Severity: Note}, {ID: "b", Severity: Doubtful, Where: "x", Saw: "1"}, {ID: "b", Severity: Doubtful, Saw: "2"}, {ID: "c", Severity: Impossible}}
	if Alarm(fs[:1]) || !Alarm(fs) || Count(fs, Doubtful) != 2 {
		t.Errorf("alarm %v, %v; %d doubtful", Alarm(fs[:1]), Alarm(fs), Count(fs, Doubtful))
	}
	Sort(fs)
	groups := Groups(fs)
	if len(groups) != 3 || groups[0][0].ID != "c" || len(groups[1]) != 2 || groups[1][0].Text() != "x: 1" || groups[1][1].Text() != "2" {
		t.Errorf("%+v", groups)
	}
	if s := Severity("reproduced"); s.Alarm() || s.Rank() != -1 {
		t.Errorf("a word that is not a severity: %v, %d", s.Alarm(), s.Rank())
	}
}

func TestParseRules(t *testing.T) {
	rules := ParseRules("# A page\n\n### not-a-rule\n\nText.\n" +
		"\n### slow\n\nA line that is slow (doubtful).\n\n- Why: it waits.\n- Do: do not wait.\n" +
		"\n### cpu\n\nCPU (or two) (note).\n\n- Why: it is\n  long.\n- Do: cut it.\n" +
		"\n### dsr\n\nDSR is (not) used (no effect).\n\n- Why: a reason.\n- Do: nothing.\n- See: a book.\n")
	want := Rules{
		{ID: "slow", Severity: Doubtful, Title: "a line that is slow", Why: "it waits", Do: "do not wait"},
		{ID: "dsr", Severity: NoEffect, Title: "DSR is (not) used", Why: "a reason", Do: "nothing", Source: "a book"},
	}
	if !slices.Equal(rules, want) {
		t.Errorf("got %+v, want %+v", rules, want)
	}
	if got := rules.Of("dsr"); got != want[1] {
		t.Errorf("dsr is %+v", got)
	}
	if got := rules.Of("cpu"); got != (Rule{}) {
		t.Errorf("cpu, whose reason has two lines, is %+v", got)
	}
}
