package finding

import "testing"

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
