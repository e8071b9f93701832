package plot

import (
	"slices"
	"testing"
)

// TestNamesAreWhole: the longest name of the catalogue is whole in every chart, and that of a variant in a plot.
func TestNamesAreWhole(t *testing.T) {
	const name = "cilium-native-legacy"
	const variant = "calico-ebpf-underlay(service-proxy=nftables,mtu=9000)" // of a sweep
	points := []LinePoint{{X: 0, Value: 1}, {X: 10, Value: 2}}
	for kind, d := range map[string]Drawing{
		"lines":   Lines{Lines: []Line{{Name: name, Points: points}}}.Draw(),
		"variant": Lines{Lines: []Line{{Name: name, Points: points}, {Name: variant, Points: points}}}.Draw(),
		"dots":    Dots{Rows: []DotRow{{Name: name}}}.Draw(),
		"bars":    Bars{Columns: []BarColumn{{Name: "x"}}, Rows: []BarRow{{Name: name, Bars: []Bar{{}}}}}.Draw(),
		"stacked": Bars{Stacked: true, Columns: []BarColumn{{Name: "x"}}, Rows: []BarRow{{Name: name, Bars: []Bar{{}}}}}.Draw(),
		"heat":    Heat{Rows: []HeatRow{{Name: name}}}.Draw(),
	} {
		want := name
		if kind == "variant" {
			want = variant
		}
		if !slices.ContainsFunc(d.Groups, func(g Group) bool {
			return slices.ContainsFunc(g.Shapes, func(s Shape) bool { return s.Text == want })
		}) {
			t.Errorf("%s: the name is cut", kind)
		}
	}
}
