package pattern

import (
	"slices"
	"testing"
)

func TestSplitOutside(t *testing.T) {
	for text, want := range map[string][]string{
		"": {""}, "a": {"a"}, "a,b": {"a", "b"}, "a(x=1,y=2),b": {"a(x=1,y=2)", "b"}, "a),b": {"a)", "b"}, "a(,b": {"a(,b"}, ",": {"", ""}, "a((,),),b": {"a((,),)", "b"},
	} {
		if got := SplitOutside(text, ','); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if a, b, ok := CutOutside("canal(services=10)=canal(mtu=1400)=x", '='); a != "canal(services=10)" || b != "canal(mtu=1400)=x" || !ok {
		t.Errorf("%q %q %v", a, b, ok)
	}
}
