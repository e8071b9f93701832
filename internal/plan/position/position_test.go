package position

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestParseFaults(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"twice":     {"b:\n  m: true\n  m: false\nr: x\nr: y\n", "f:3: b.m: is given twice (first in line 2)\nf:5: r: is given twice (first in line 4)"},
		"syntax":    {"bpf: [\n", "f:2: is not YAML: did not find expected node content"},
		"tab":       {"a:\n\tb: 1\n", "f:2: is not YAML: found character that cannot start any token"},
		"too large": {strings.Repeat("#", MaxFile+1), "f: is larger than 1048576 bytes"},
		"bomb":      {bomb, "f:1: expands to more than 100000 values or is nested deeper than 64"},
		"deep":      {strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100), "f:1: expands to more than 100000 values or is nested deeper than 64"},
		"itself":    {"b: &a\n  c: *a\n", "f:2: expands to more than 100000 values or is nested deeper than 64"},
		"key":       {"? {a: b}\n: c\n", "f:1: has a key that is not plain text"},
		"documents": {strings.Repeat("a: 1\n---\n", 501), "f:1000: has more than 500 documents"},
	} {
		var fs Faults
		Parse(Source{Name: "f", Text: c.text}, &fs)
		if got := fs.Error(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestMerge: anchors and merge keys mean what they mean to Helm, and a merged value keeps its own line.
func TestMerge(t *testing.T) {
	var fs Faults
	docs := Parse(Source{Name: "f", Text: "base: &base {m: 1, h: 1}\nk: &yes true\nb:\n  <<: *base\n  h: 2\nc: {e: *yes}\n"}, &fs)
	if len(fs) > 0 || len(docs) != 1 {
		t.Fatal(fs, len(docs))
	}
	for path, want := range map[string]string{"b.m": "1:1", "b.h": "2:5", "c.e": "true:6", "b.x": "<nil>", "k.x": "<nil>"} {
		got := "<nil>"
		if n := docs[0].At(strings.Split(path, ".")...); n != nil {
			got = fmt.Sprintf("%s:%d", n.Text, n.Line)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestWithin: YAML in a value of YAML has the lines of the file.
func TestWithin(t *testing.T) {
	var fs Faults
	docs := Parse(Source{Name: "f", Text: "a: 1\nvalues: |-\n  x: 1\n  x: 2\n"}, &fs)
	Parse(Within("f", "values", docs[0].At("values")), &fs)
	if got, want := fs.Error(), "f:4: x: in values: is given twice (first in line 3)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDecoder(t *testing.T) {
	d, root := NewDecoder("f", "count: x\nnmae: a\nlabels: {a: 1, b: [2]}\ninner:\n  list: [a, {b: c}]\n  late: 7\n", "a file")
	var count, late int
	var list []string
	var labels map[string]string
	d.Mapping("", root, Keys{
		"count":  Value(d, &count, strconv.Atoi),
		"name":   Value(d, new(string), text),
		"labels": d.Labels(&labels),
		"inner":  d.Within(Keys{"list": Values(d, &list, text), "late": Value(d, &late, strconv.Atoi)}),
	})
	want := `f:1: count: strconv.Atoi: parsing "x": invalid syntax
f:2: unknown key "nmae", did you mean "name"?
f:3: labels: want one value
f:5: inner.list: want one value`
	if got := d.Faults().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if late != 7 || len(list) != 1 || labels["a"] != "1" {
		t.Errorf("got %d, %v, %v", late, list, labels)
	}
	var found Faults
	found.Add("count", "is too low")
	found.Add("inner.late", "is too high")
	found.AddItem("inner", "late", "is doubtful")
	found.Add("other", "is missing")
	want = "f:6: inner.late: is too high\nf:1: other: is missing"
	if got := d.Place(found).Error(); got != want {
		t.Errorf("placed\n%s\nwant\n%s", got, want)
	}
	if err := d.Place(nil).Err(); err != nil {
		t.Errorf("no fault became %v", err)
	}
}

func TestDocument(t *testing.T) {
	for text, want := range map[string]string{
		"":              "f: is empty: want a name",
		"# nothing\n":   "f: is empty: want a name",
		"- a":           "f:1: is not a mapping of keys to values",
		"null":          "f:1: is not a mapping of keys to values",
		"a: 1\n---\nb:": "f:3: has more than one document",
		"a: 1":          "",
	} {
		d, _ := NewDecoder("f", text, "a name")
		if got := d.Faults().Error(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestFaultsAreCut(t *testing.T) {
	var fs Faults
	Parse(Source{Name: "f", Text: strings.Repeat("a: 1\n", 500)}, &fs)
	lines := strings.Split(fs.Error(), "\n")
	if len(lines) != 51 || lines[50] != "and 449 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: &a [*a]\n<<: *a")
	f.Add("a: {b: 1}\n---\n- x\n")
	f.Fuzz(func(t *testing.T, text string) {
		var fs Faults
		for _, n := range Parse(Source{Name: "f", Text: text}, &fs) {
			if n.Kind == Mapping && len(n.Keys) != len(n.Items) {
				t.Errorf("%q: %d keys and %d values", text, len(n.Keys), len(n.Items))
			}
		}
	})
}

// TestStruct reads by yaml tags: every mistake has its line, and values beside it are read.
func TestStruct(t *testing.T) {
	type item struct {
		Name  string   `yaml:"name"`
		Share float64  `yaml:"share"`
		Tags  []string `yaml:"tags"`
	}
	var v struct {
		Items []item `yaml:"items"`
		Extra *item  `yaml:"extra"`
		On    bool   `yaml:"on"`
		Count int    `yaml:"count"`
		Skip  string
	}
	d, root := NewDecoder("f", "items:\n  - {name: a, share: 0.5, tags: [x, y]}\n  - {nmae: b, share: much}\nextra: {name: c}\non: true\ncount: 1.5\nSkip: z\n", "items")
	d.Struct(&v)("", root)
	want := "f:3: unknown key \"items.1.nmae\", did you mean \"name\"?\nf:3: items.1.share: \"much\" is not a number\nf:6: count: \"1.5\" is not a whole number\nf:7: unknown key \"Skip\""
	if got := d.Faults().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(v.Items) != 2 || v.Items[0].Share != 0.5 || len(v.Items[0].Tags) != 2 || v.Extra == nil || v.Extra.Name != "c" || !v.On {
		t.Errorf("%+v", v)
	}
	var found Faults
	found.Add("items.0", "is doubtful")
	if got := d.Place(found).Error(); got != "f:2: items.0: is doubtful" {
		t.Errorf("placed %s", got)
	}
}

func text(s string) (string, error) { return s, nil }

// TestLastOfTwo: of a key that is given twice the last is in force, as for what a chart renders.
func TestLastOfTwo(t *testing.T) {
	var faults Faults
	n := Parse(Source{Name: "f", Text: "a: x\nb: y\na: z\n"}, &faults)
	if len(faults) != 1 || len(n) != 1 || n[0].ScalarAt("a") != "z" || n[0].ScalarAt("b") != "y" || len(n[0].Keys) != 2 {
		t.Errorf("%v %+v", faults, n)
	}
}
