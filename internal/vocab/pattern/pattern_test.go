package pattern

import (
	"slices"
	"testing"
)

// TestPattern: methods are those of the compiled expression, and a fault shows at first use.
func TestPattern(t *testing.T) {
	p := New(`(\d+) ms`)
	if !p.MatchString("9 ms") || !p.Match([]byte("9 ms")) || p.Regexp().FindString("took 12 ms") != "12 ms" || p.Regexp().String() != `(\d+) ms` {
		t.Error("no match")
	}
	if got := p.FindStringSubmatch("took 12 ms"); !slices.Equal(got, []string{"12 ms", "12"}) {
		t.Errorf("%q", got)
	}
	if got := p.ReplaceAllString("1 ms, 2 ms", "$1 s"); got != "1 s, 2 s" {
		t.Errorf("%q", got)
	}
	if got := p.FindAllStringSubmatch("1 ms 2 ms", -1); len(got) != 2 {
		t.Errorf("%q", got)
	}
	bad := New("(")
	defer func() {
		if recover() == nil {
			t.Error("a bad expression matches")
		}
	}()
	bad.MatchString("x")
}
