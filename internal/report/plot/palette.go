package plot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Color names the role of a colour. The Theme determines its value.
type Color string

// Roles that are not series.
const (
	Ink    Color = "ink"    // text, medians
	Muted  Color = "muted"  // secondary text
	Grid   Color = "grid"   // lines behind the data
	Paper  Color = "paper"  // background
	Accent Color = "accent" // the baseline
	// Neutral fills cells without a verdict, Same cells whose verdict is the same.
	Neutral Color = "neutral"
	Same    Color = "same"
	// BarBest fills the bar of the best value, BarSame the bars of values that are the same as the best. BarOther fills
	// bars without such a verdict.
	BarBest  Color = "bar-best"
	BarSame  Color = "bar-same"
	BarOther Color = "bar-other"
)

// seriesColors is the number of colours for series. Further series reuse them with another dash pattern.
const seriesColors = 8

// Series returns the colour and the index of the dash pattern of series n, which counts from 1.
func Series(n int) (Color, int) {
	i := max(0, n-1)
	return Color(fmt.Sprintf("s%d", i%seriesColors+1)), i / seriesColors
}

// Levels is the number of shades for better values. There are as many for worse values.
const Levels = 4

// Level returns the shade of a difference. n is 1 to 4 if the value is increasingly better, -1 to -4 if it is increasingly
// worse, and 0 if it is the same. Numbers beyond these have the last shade.
func Level(n int) Color {
	switch {
	case n > 0:
		return Color(fmt.Sprintf("better%d", min(n, Levels)))
	case n < 0:
		return Color(fmt.Sprintf("worse%d", min(-n, Levels)))
	}
	return Same
}

// BarWorse returns the colour of a bar whose value is worse than the best. n is 1 to 4; larger numbers mean a larger
// difference. Other numbers have the nearest shade.
func BarWorse(n int) Color { return Color(fmt.Sprintf("bar-worse%d", max(1, min(n, Levels)))) }

// Theme selects the values of colours.
type Theme int

const (
	// Light has dark text on white. Dark has light text on a background that is nearly black.
	Light Theme = iota
	Dark
)

// palette has the value of each colour in the two themes, as 0xRRGGBB. Series follow Okabe and Ito's palette for
// colour-blind readers, darkened on white until lines are visible. Blue is better and orange worse, which readers with
// the common forms of colour blindness can distinguish. Cells of a table have text on a pale background; bars have no
// text.
var palette = map[Color][2]uint32{
	Ink: {0x1b1f24, 0xe9ecf1}, Muted: {0x59626e, 0xa3acb9}, Grid: {0xe3e7ec, 0x2c333d}, Paper: {0xffffff, 0x161a20},
	Accent: {0x8a4b00, 0xffb454}, Neutral: {0xf3f5f7, 0x1f252d}, Same: {0xe6e9ee, 0x2a313b},
	"s1": {0x0069a8, 0x56b4e9}, "s2": {0xc24e00, 0xff9a57}, "s3": {0x007a59, 0x34cfa2}, "s4": {0xa0407f, 0xe79bca},
	"s5": {0x8a5d00, 0xf0c84b}, "s6": {0x2286bd, 0xa5d8f7}, "s7": {0x5a626e, 0xb9c0ca}, "s8": {0x8f2d2d, 0xff9c92},
	BarBest: {0x0069a8, 0x56b4e9}, BarSame: {0x4f97cb, 0x3f7ea8}, BarOther: {0x7d8793, 0x6b7683},
	"bar-worse1": {0xd67c2c, 0x8f6038}, "bar-worse2": {0xbd6417, 0xb5743a}, "bar-worse3": {0x9c4c0a, 0xdd8a3c}, "bar-worse4": {0x7f3a05, 0xffab5c},
	"better1": {0xdcebf8, 0x16293c}, "better2": {0xb8d7ef, 0x1a3b59}, "better3": {0x8fbfe3, 0x1f4f7a}, "better4": {0x68a6d6, 0x28659a},
	"worse1": {0xfdebdb, 0x33261b}, "worse2": {0xf9d1ac, 0x4c3019}, "worse3": {0xf1b27b, 0x6b3f18}, "worse4": {0xe4914f, 0x8a501a},
}

// colors returns all colours of the palette, sorted by name.
func colors() []Color { return slices.Sorted(maps.Keys(palette)) }

// Variables returns the CSS declarations of a theme's colours: "--ink:#1b1f24;...".
func Variables(t Theme) string {
	var b strings.Builder
	for _, c := range colors() {
		fmt.Fprintf(&b, "--%s:#%06x;", c, palette[c][t])
	}
	return b.String()
}

// Classes returns the CSS rules for the colours and fonts of a page's drawings.
func Classes() string {
	var b strings.Builder
	for _, c := range colors() {
		fmt.Fprintf(&b, ".f-%s{fill:var(--%s)}.k-%s{stroke:var(--%s)}", c, c, c, c)
	}
	b.WriteString(".chart text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-variant-numeric:tabular-nums}.chart .b{font-weight:600}")
	return b.String()
}
