package junit

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

var cases = map[string]reporttest.Result{
	"small": reporttest.Small(10), "one-trial": reporttest.Small(1), "all-failed": reporttest.AllFailed(), "empty": {},
	"not-numbers": reporttest.NotNumbers(), "hostile": reporttest.Hostile(),
}

func render(t *testing.T, r reporttest.Result, o Options) []byte {
	t.Helper()
	d, err := report.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Render(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for name, r := range cases {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".xml", render(t, r, Options{})) })
	}
	golden.Check(t, "small-worse.xml", render(t, cases["small"], Options{Worse: true}))
}

// element is any element, read without our types.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e element) all(name string) (out []element) {
	for _, c := range e.Children {
		if c.XMLName.Local == name {
			out = append(out, c)
		}
	}
	return out
}

// allowed are the attributes and children of each element in the JUnit schema of Jenkins; the first attributes are needed.
var allowed = map[string]struct{ need, may, children string }{
	"testsuites": {"", "name time tests failures errors", "testsuite"},
	"testsuite":  {"name tests failures errors", "time skipped timestamp hostname id package", "properties testcase system-out system-err"},
	"properties": {"", "", "property"},
	"property":   {"name value", "", ""},
	"testcase":   {"name", "classname time", "skipped error failure system-out system-err"},
	"skipped":    {"", "message type", ""},
	"failure":    {"", "message type", ""},
	"system-out": {"", "", ""},
}

func (e element) check(t *testing.T, in string) {
	t.Helper()
	rule, ok := allowed[e.XMLName.Local]
	if !ok {
		t.Errorf("%s: element %s", in, e.XMLName.Local)
	}
	for _, need := range strings.Fields(rule.need) {
		if e.attr(need) == "" && need != "value" {
			t.Errorf("%s: %s has no %s", in, e.XMLName.Local, need)
		}
	}
	for _, a := range e.Attrs {
		if !strings.Contains(" "+rule.need+" "+rule.may+" ", " "+a.Name.Local+" ") {
			t.Errorf("%s: %s has the attribute %s", in, e.XMLName.Local, a.Name.Local)
		}
	}
	for _, c := range e.Children {
		if !strings.Contains(" "+rule.children+" ", " "+c.XMLName.Local+" ") {
			t.Errorf("%s: %s in %s", in, c.XMLName.Local, e.XMLName.Local)
		}
		c.check(t, in)
	}
	if e.XMLName.Local == "testcase" && len(e.all("skipped"))+len(e.all("failure")) > 1 {
		t.Errorf("%s: %s is skipped and failed", in, e.attr("name"))
	}
}

func read(t *testing.T, b []byte) element {
	t.Helper()
	var root element
	d := xml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	if tok, err := d.Token(); tok != nil && strings.TrimSpace(string(tok.(xml.CharData))) != "" || err != nil && err != io.EOF {
		t.Errorf("after the end: %v, %v", tok, err)
	}
	return root
}

// count counts cases, failed and skipped ones by looking at them.
func count(suite element) (tests, failures, skips string) {
	var n [3]int
	for _, c := range suite.all("testcase") {
		n[0]++
		n[1] += len(c.all("failure"))
		n[2] += len(c.all("skipped"))
	}
	return strconv.Itoa(n[0]), strconv.Itoa(n[1]), strconv.Itoa(n[2])
}

// Every document keeps the schema, its counts are those of its cases, and no two cases have one name.
func TestSchema(t *testing.T) {
	everything := map[string]reporttest.Result{"nine-paths": reporttest.NinePaths(5)}
	for name, r := range cases {
		everything[name] = r
	}
	for name, r := range everything {
		for _, o := range []Options{{}, {Worse: true}} {
			root := read(t, render(t, r, o))
			root.check(t, name)
			suite := root.all("testsuite")[0]
			tests, failures, skips := count(suite)
			for _, e := range []element{root, suite} {
				if e.attr("tests") != tests || e.attr("failures") != failures || e.XMLName.Local == "testsuite" && e.attr("skipped") != skips || e.attr("errors") != "0" {
					t.Errorf("%s: %s says %v; there are %s, %s failed, %s skipped", name, e.XMLName.Local, e.Attrs, tests, failures, skips)
				}
			}
			seen := map[string]bool{}
			for _, c := range suite.all("testcase") {
				key := c.attr("classname") + "\x00" + c.attr("name")
				if seen[key] {
					t.Errorf("%s: %q comes twice", name, key)
				}
				seen[key] = true
			}
		}
	}
}

// find returns a case of nine paths.
func find(t *testing.T, o Options, class, name string) element {
	t.Helper()
	for _, c := range read(t, render(t, reporttest.NinePaths(5), o)).all("testsuite")[0].all("testcase") {
		if c.attr("classname") == class && c.attr("name") == name {
			return c
		}
	}
	t.Fatalf("no case %s %s", class, name)
	return element{}
}

// What passes, fails and is skipped, and with which reason.
func TestOutcomes(t *testing.T) {
	if s := find(t, Options{}, "bridge", "measured").all("skipped"); len(s) != 1 || s[0].attr("message") != "the kernel has no br_netfilter" {
		t.Errorf("skipped profile: %v", s)
	}
	if s := find(t, Options{}, "macvlan.pod-to-service/local", "rr service_demand").all("skipped"); len(s) != 1 || !strings.Contains(s[0].attr("message"), "not served: the node's stack") {
		t.Errorf("path not served: %v", s)
	}
	f := find(t, Options{}, "ptp.pod-to-service/remote", "crr service_demand").all("failure")
	if len(f) != 1 || f[0].attr("message") != "all 5 trials failed" || !strings.Contains(f[0].Text, "answered with a reset") {
		t.Errorf("failed case: %v", f)
	}
	const class, name = "canal.pod-to-pod/cross-node", "crr service_demand"
	c := find(t, Options{}, class, name)
	if len(c.Children) != 1 || !strings.Contains(c.all("system-out")[0].Text, "worse") {
		t.Errorf("worse is no failure unless asked for: %+v", c)
	}
	f = find(t, Options{Worse: true}, class, name).all("failure")
	if len(f) != 1 || f[0].attr("type") != "worse" || f[0].attr("message") != "worse than raw" {
		t.Errorf("worse: %v", f)
	}
	if out := find(t, Options{}, "calico-vxlan.host-to-service/local", "stream service_demand").all("system-out"); !strings.Contains(out[0].Text, "softnet: 12 packets dropped") {
		t.Errorf("doubts: %v", out)
	}
	if f := find(t, Options{Worse: true}, "raw.host-to-host/cross-node", "rr service_demand").all("failure"); len(f) != 0 {
		t.Errorf("the baseline is not worse: %v", f)
	}
}

// A workload that no path of the kind can carry is no gap in the measurement.
func TestBarred(t *testing.T) {
	r := reporttest.NinePaths(2)
	ping := plan.Workload{Kind: plan.Ping}.Normalize()
	for i := range r.Records {
		if w := &r.Records[i].Workload; w.Kind == plan.RR && ping.Barred(r.Records[i].Path) == "" {
			*w = ping
		}
	}
	seen := 0
	for _, c := range read(t, render(t, r, Options{})).all("testsuite")[0].all("testcase") {
		if strings.HasPrefix(c.attr("name"), "ping ") && c.attr("classname") == "ptp.pod-to-service/local" {
			seen++
			if s := c.all("skipped"); len(s) != 1 || !strings.Contains(s[0].attr("message"), "answers no ICMP echo") {
				t.Errorf("%s: %v", c.attr("name"), s)
			}
		}
	}
	if seen == 0 {
		t.Error("no case was looked at")
	}
}
