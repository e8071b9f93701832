package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// document is the report of r with details: round trips for all but streams.
func document(t testing.TB, r reporttest.Result) report.Document {
	t.Helper()
	for i := range r.Records {
		rec := &r.Records[i]
		o := &sample.Observation{}
		if rec.Workload.Traits().Exchanges() {
			o.RTT = sample.NewHistogram()
			for j := range int64(500) {
				o.RTT.Record(5000 + 40*j + 13*int64(i%7)*j)
			}
		}
		rec.Client, rec.Server = o, o
	}
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func render(t testing.TB, d report.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var packText = regexp.MustCompile(`<template id="pack">([A-Za-z0-9+/=]+)</template>`)

// unpack returns what is packed in a page.
func unpack(t testing.TB, page []byte) (p pack) {
	t.Helper()
	m := packText.FindSubmatch(page)
	if m == nil {
		return p
	}
	if err := json.NewDecoder(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1])))).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// expanded is a page with the parts of its pack in their places, as the script puts them.
func expanded(t testing.TB, page []byte) []byte {
	t.Helper()
	for i, part := range unpack(t, page).Parts {
		place := regexp.MustCompile(fmt.Sprintf(`(<div class="figures" data-pack="%d">)<p class="note">[^<]*</p>`, i+1))
		if len(place.FindAll(page, -1)) != 1 {
			t.Fatalf("part %d has not one place", i+1)
		}
		page = place.ReplaceAllFunc(page, func(b []byte) []byte { return append(place.FindSubmatch(b)[1], part...) })
	}
	return page
}

// results are those that every property below must hold for.
func results() map[string]reporttest.Result {
	return map[string]reporttest.Result{
		"nine-paths": reporttest.NinePaths(5), "one-trial": reporttest.Small(1), "all-failed": reporttest.AllFailed(),
		"empty": {}, "hostile": evil(), "not-numbers": reporttest.NotNumbers(),
	}
}

// evil is Hostile with more ways to break out of a page.
func evil() reporttest.Result {
	r := reporttest.Hostile()
	names := []string{
		`"><img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `</textarea><svg onload=alert(1)>`, `</style><b>`,
		`javascript:alert(1)`, "{{.CSP}}", `' onmouseover='alert(1)`, "=cmd|' /C calc'!A0", "\u202egnp.exe", "</title>",
	}
	for i := range r.Records {
		name := names[i%len(names)]
		r.Records[i].Warnings = append(r.Records[i].Warnings, resultWarning(name))
		if i%2 == 0 {
			r.Records[i].Profile = plan.VariantOf(name)
		}
	}
	r.Header.Plan.Profiles = append(r.Header.Plan.Profiles, plan.Variants(names...)...)
	r.Header.Plan.Baseline = plan.VariantOf(names[0])
	for _, n := range names {
		r.Header.Facts[n] = n
	}
	return r
}

func TestGolden(t *testing.T) {
	// The page without its pictures' details: small enough to be read in review.
	for name, r := range map[string]reporttest.Result{"one-trial": reporttest.Small(1), "small": reporttest.Small(5), "all-failed": reporttest.AllFailed()} {
		d, err := reporttest.Build(r.Header, r.Records, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := string(packText.ReplaceAll(expanded(t, render(t, d)), nil))
		_, body, ok := strings.Cut(out, "<body>")
		if !ok {
			t.Fatal("no body")
		}
		body, _, _ = strings.Cut(body, "<script>") // style and script have files of their own
		golden.Check(t, name+".html", []byte(body))
	}
}

// walk calls f for every element.
func walk(n *html.Node, f func(*html.Node)) {
	if n.Type == html.ElementNode {
		f(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, f)
	}
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func parse(t *testing.T, b []byte) *html.Node {
	t.Helper()
	n, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// known are the elements and attributes that a page is made of; anything else would have come out of a name.
var (
	knownElements = strings.Fields(`html head meta title style body a header nav ul ol li details summary div fieldset legend button p main
		section h1 h2 h3 h4 article figure figcaption table caption thead tbody tr th td b i br sup span dl dt dd code template link script
		svg desc g path text rect`)
	knownAttributes = strings.Fields(`lang charset http-equiv content name property rel class href id hidden type value role scope title tabindex
		xmlns viewbox width height d x y font-size text-anchor stroke-width stroke-linejoin stroke-linecap stroke-dasharray
		opacity fill download`)
	ownAttribute = regexp.MustCompile(`^(data-(p|l|w|m|k|row|script|part|copy|pack)|aria-(label|labelledby|pressed))$`)
)

// Whatever a file says, a page consists of our elements and attributes, asks nothing of the network, and holds together.
func TestPagesAreSafeAndSound(t *testing.T) {
	for name, r := range results() {
		out := expanded(t, render(t, document(t, r)))
		ids, hrefs := map[string]bool{}, []string{}
		walk(parse(t, out), func(n *html.Node) {
			if !slices.Contains(knownElements, n.Data) {
				t.Errorf("%s: element <%s>", name, n.Data)
			}
			for _, a := range n.Attr {
				if !slices.Contains(knownAttributes, strings.ToLower(a.Key)) && !ownAttribute.MatchString(a.Key) {
					t.Errorf("%s: attribute %s=%q of <%s>", name, a.Key, a.Val, n.Data)
				}
			}
			if id, ok := attr(n, "id"); ok {
				if ids[id] {
					t.Errorf("%s: two elements are called %s", name, id)
				}
				ids[id] = true
			}
			if href, ok := attr(n, "href"); ok {
				hrefs = append(hrefs, href)
			}
			if labels, ok := attr(n, "aria-labelledby"); ok {
				for _, l := range strings.Fields(labels) {
					hrefs = append(hrefs, "#"+l)
				}
			}
			_, hidden := attr(n, "hidden")
			_, scripted := attr(n, "data-script")
			if hidden != scripted {
				t.Errorf("%s: <%s> is hidden (%v) from readers without the script, and shown by it (%v)", name, n.Data, hidden, scripted)
			}
		})
		for _, h := range hrefs {
			if strings.HasPrefix(h, "data:image/svg+xml;base64,") {
				continue // the image to share
			}
			if !strings.HasPrefix(h, "#") || !ids[h[1:]] {
				t.Errorf("%s: link to %q, which is not on the page", name, h)
			}
		}
		if bytes.ContainsAny(out, "\x00\x1b\u202e") || bytes.Contains(out, []byte("ZgotmplZ")) {
			t.Errorf("%s: a control character, or a value that the template refused", name)
		}
		if bytes.Contains(out, []byte("NaN\"")) || bytes.Contains(out, []byte("Inf\"")) {
			t.Errorf("%s: a value that is no number", name)
		}
	}
}

// The policy names the digests of what is on the page, allows nothing remote and no code in attributes.
func TestPolicy(t *testing.T) {
	for name, r := range results() {
		var csp, style, script string
		scripts := 0
		walk(parse(t, render(t, document(t, r))), func(n *html.Node) {
			switch {
			case n.Data == "meta":
				if v, _ := attr(n, "http-equiv"); v == "Content-Security-Policy" {
					csp, _ = attr(n, "content")
				}
			case n.DataAtom == atom.Style && n.FirstChild != nil:
				style += n.FirstChild.Data
			case n.DataAtom == atom.Script:
				scripts++
				script = n.FirstChild.Data
			}
		})
		if scripts != 1 || csp != securityPolicy(style, script) {
			t.Errorf("%s: %d scripts; the policy %q is not that of the page's style and script", name, scripts, csp)
		}
		if !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") ||
			strings.Count(csp, "data:") != 1 || !strings.Contains(csp, "; img-src data:; ") {
			t.Errorf("%s: policy %q", name, csp)
		}
	}
	for _, s := range []string{styleText, scriptText} {
		for _, bad := range []string{"http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "eval(", "innerHTML"} {
			if strings.Contains(s, bad) {
				t.Errorf("%q in the page's own style or script", bad)
			}
		}
	}
}

// TestFirstScreenSaysWhatProfilesDo: functions and proof of each profile stand above the chart, their words below it, and a
// link to the page has the answer as its title.
func TestFirstScreenSaysWhatProfilesDo(t *testing.T) {
	page := string(render(t, document(t, reporttest.NinePaths(6))))
	before, after, _ := strings.Cut(page, `id="glance"`)
	for _, want := range []string{"Functions: Services (all but ", "; NetworkPolicy (", "Proof: ", "both (flannel-vxlan)", `og:title" content="Requests: macvlan is best`} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q above the chart", want)
		}
	}
	for _, want := range []string{" Proof: wire: "} {
		if !strings.Contains(after, want) {
			t.Errorf("no %q below the chart", want)
		}
	}
}

// Every value, ratio and doubt of the document is on the page, and the answer comes before any of them.
func TestNothingIsLost(t *testing.T) {
	d := document(t, reporttest.NinePaths(5))
	out := string(render(t, d))
	want, got := 0, strings.Count(out, `<span class="claim">`)
	for _, s := range d.Sections {
		for _, tab := range s.Tables {
			for _, r := range tab.Rows {
				for _, e := range r.Entries {
					if e.Mark() != "" {
						want++
					}
				}
			}
		}
	}
	if want == 0 || got != want {
		t.Errorf("%d claims on the page, %d in the document", got, want)
	}
	at := 0
	var answer []string
	for _, n := range d.Needs {
		answer = append(answer, `<p class="note">`+html.EscapeString(n.Conclusion.Text))
	}
	for _, l := range d.Lines[len(d.Needs):] {
		answer = append(answer, "<li>"+html.EscapeString(l))
	}
	if len(d.Needs) == 0 || len(answer) == len(d.Needs) {
		t.Errorf("%d lines of an answer for %d needs", len(answer), len(d.Needs))
	}
	for _, l := range answer {
		i := strings.Index(out, l)
		if i < at || i > strings.Index(out, `id="comparison"`) {
			t.Errorf("the answer %q is at %d", l, i)
		}
		at = i
	}
	for _, f := range d.Footnotes {
		if !strings.Contains(out, ">"+html.EscapeString(f)+"<") {
			t.Errorf("doubt %q is lost", f)
		}
	}
	for _, n := range d.Facts.Names() {
		if !strings.Contains(out, "<dt>"+n+"</dt><dd>"+d.Facts[n]+"</dd>") {
			t.Errorf("fact %s is lost", n)
		}
	}
	packed := unpack(t, []byte(out))
	if got := len(packed.Rows); got != len(d.Analysis.Cells) || got == 0 || len(packed.Parts) == 0 {
		t.Errorf("%d rows for %d cells", got, len(d.Analysis.Cells))
	}
	for _, row := range packed.Rows {
		if slices.Contains(row.Keys[:], 0) {
			t.Errorf("a filter does not reach %q", row.Fields)
		}
	}
}

// The reader's own job is on the page if it was asked for, with every number of the document.
func TestImpact(t *testing.T) {
	r := reporttest.NinePaths(5)
	d, err := reporttest.Build(r.Header, r.Records, report.Options{Impact: reporttest.Job(), Baseline: plan.VariantOf("canal")})
	if err != nil {
		t.Fatal(err)
	}
	out := string(render(t, d))
	cells := 0
	for _, g := range d.Sections[0].Grids {
		for i, row := range g.Cells {
			for _, c := range append([]string{g.Labels[i]}, row...) {
				cells++
				if !strings.Contains(out, ">"+html.EscapeString(c)+"<") && !strings.Contains(out, ">"+strings.ReplaceAll(c, "+", "&#43;")+"<") {
					t.Errorf("%q is lost", c)
				}
			}
		}
	}
	if cells < 40 || !strings.Contains(out, `href="#part-1">What it means for the job`) {
		t.Errorf("%d cells", cells)
	}
	if out := render(t, document(t, r)); bytes.Contains(out, []byte(`What it means for the job`)) {
		t.Error("a job that was not asked for")
	}
}

// Published claims are on the page where the result can test one of them; it counts those that it cannot test,
// and none is shown as reproduced that package findings does not call so.
func TestClaims(t *testing.T) {
	d := document(t, reporttest.NinePaths(8))
	n := map[findings.Outcome]int{}
	for _, j := range findings.Judge(d.Analysis, findings.Published().Claims) {
		n[j.Outcome]++
	}
	open := map[string]int{}
	page := parse(t, render(t, d))
	var section *html.Node
	walk(page, func(n *html.Node) {
		if id, _ := attr(n, "id"); id == "claims" {
			section = n
		}
	})
	if section == nil {
		t.Fatal("no claims on the page")
	}
	walk(section, func(n *html.Node) {
		if n.DataAtom == atom.H4 {
			outcome, _, _ := strings.Cut(n.FirstChild.Data, ":")
			open[outcome]++
		}
	})
	for _, o := range findings.Outcomes[:4] {
		if open[string(o)] != n[o] {
			t.Errorf("%d claims are %s on the page, %d in truth", open[string(o)], o, n[o])
		}
	}
	if open[string(findings.NotTestable)] != 0 || n[findings.NotTestable] == 0 || n[findings.InPart] == 0 {
		t.Errorf("on the page %v, in truth %v", open, n)
	}
	if out := render(t, document(t, reporttest.Small(5))); bytes.Contains(out, []byte(`id="claims"`)) {
		t.Error("claims that this result cannot test")
	}
}

// TestRaw: the pack has a row for each cell with all its digits, and no field that a spreadsheet would run.
func TestRaw(t *testing.T) {
	for name, r := range results() {
		d := document(t, r)
		p := unpack(t, render(t, d))
		if len(p.Rows) != len(d.Analysis.Cells) {
			t.Errorf("%s: %d rows, %d cells", name, len(p.Rows), len(d.Analysis.Cells))
		}
		for i, row := range p.Rows {
			for j, f := range row.Fields {
				number := p.Heads[j].Numbers
				if !number && f != "" && strings.ContainsAny(f[:1], "=+-@") {
					t.Errorf("%s: a spreadsheet would run %q", name, f)
				}
				if number && strings.ContainsAny(f, "NIn") {
					t.Errorf("%s: row %d has %q for a number", name, i, f)
				}
			}
			if c := d.Analysis.Cells[i]; c.N > 0 && number.Finite(c.Median) {
				if got, want := row.Fields[6], strconv.FormatFloat(c.Median, 'g', digits, 64); got != want {
					t.Errorf("%s: median %s, want %s", name, got, want)
				}
			}
		}
	}
}

// TestWeight: the page of a large result has its numbers once, and stays small.
func TestWeight(t *testing.T) {
	page := render(t, document(t, reporttest.NinePaths(12)))
	rows := unpack(t, page).Rows
	if most := 600 << 10; len(page) > most || len(rows) < 500 {
		t.Errorf("%d bytes for %d rows, want at most %d", len(page), len(rows), most)
	}
	if n := bytes.Count(page, []byte("<svg")); n > 20 {
		t.Errorf("%d drawings are on the page before a reader asks", n)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := Render(full{}, report.Document{}); err == nil {
		t.Error("a write error is lost")
	}
}

// FuzzNames puts any text in every place that a file has for one: the page keeps its elements.
func FuzzNames(f *testing.F) {
	f.Add(`"><script>alert(1)</script>`)
	f.Add("</textarea>\xff")
	f.Add("--><!--<![CDATA[")
	f.Fuzz(func(t *testing.T, s string) {
		r := reporttest.Small(2)
		r.Header.Plan.Name, r.Header.Plan.Profiles[1], r.Header.Facts[s] = s, plan.VariantOf(s), s
		for i := range r.Records {
			if r.Records[i].Profile != plan.VariantOf("host") {
				r.Records[i].Profile = plan.VariantOf(s)
			}
			r.Records[i].Warnings = append(r.Records[i].Warnings, resultWarning(s))
		}
		c := r.Records[0]
		c.Profile, c.Client = plan.VariantOf(s), &sample.Observation{RTT: sample.NewHistogram()}
		c.Client.RTT.Record(5000)
		d, err := reporttest.Build(r.Header, append(r.Records, c), report.Options{})
		if err != nil {
			t.Skip("no report of this")
		}
		n, err := html.Parse(bytes.NewReader(render(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		walk(n, func(n *html.Node) {
			if !slices.Contains(knownElements, n.Data) {
				t.Fatalf("%q made an element <%s>", s, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "src" {
					t.Fatalf("%q made an attribute %s", s, a.Key)
				}
			}
		})
	})
}

// TestSweepAnswers: the sentences on curves are all on the page, although there is a workload.
func TestSweepAnswers(t *testing.T) {
	d := document(t, reporttest.Growth())
	page := string(render(t, d))
	for _, line := range d.Lines {
		if !strings.Contains(page, "<li>"+line+"</li>") {
			t.Errorf("%q is not on the page", line)
		}
	}
	if len(d.Lines) < 6 {
		t.Errorf("%d lines about six profiles", len(d.Lines))
	}
}
