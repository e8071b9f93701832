
// TestWholeShare: a part that has all samples of each trial has no error, and no interval that is not a number.
func TestWholeShare(t *testing.T) {
	p := Share{Share: 1}
	if got := p.of(2, 0); got != (Interval{2, 2, 2}) {
		t.Errorf("%+v", got)
	}
}
