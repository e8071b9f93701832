package chart

import (
	"slices"
	"testing"
)

// TestNamesAreWhole: the longest name of the catalogue is whole in every chart with a row for each name.
func TestNamesAreWhole(t *testing.T) {
	const name = "cilium-native-legacy"
	for kind, d := range map[string]Drawing{
		"dots":    Dots{Rows: []DotRow{{Name: name}}}.Draw(),
		"bars":    Bars{Columns: []BarColumn{{Name: "x"}}, Rows: []BarRow{{Name: name, Bars: []Bar{{}}}}}.Draw(),
		"stacked": Bars{Stacked: true, Columns: []BarColumn{{Name: "x"}}, Rows: []BarRow{{Name: name, Bars: []Bar{{}}}}}.Draw(),
		"heat":    Heat{Rows: []HeatRow{{Name: name}}}.Draw(),
	} {
		if !slices.ContainsFunc(d.Groups, func(g Group) bool {
			return slices.ContainsFunc(g.Shapes, func(s Shape) bool { return s.Text == name })
		}) {
			t.Errorf("%s: the name is cut", kind)
		}
	}
}
