package openmetrics

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a line of an exposition.
type sample struct {
	name   string
	labels map[string]string
	value  float64
	time   string
}

var (
	nameRule   = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	sampleRule = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: (\d+(?:\.\d+)?))?$`)
	labelRule  = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)`)
)

// parser reads an exposition and complains about whatever OpenMetrics 1.0 forbids.
type parser struct {
	samples []sample
	// families are those that began; name, kind and unit are of the one that is under way; said are its metadata.
	families         map[string]bool
	name, kind, unit string
	said             map[string]bool
	inSamples        bool
	series           map[string]bool
}

func parse(text string) ([]sample, error) {
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok || !utf8.ValidString(text) {
		return nil, fmt.Errorf("it does not end in # EOF, or is not UTF-8")
	}
	p := &parser{families: map[string]bool{}, series: map[string]bool{}}
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		if body == "" {
			break
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", i+1, err, line)
		}
	}
	return p.samples, nil
}

func (p *parser) line(line string) error {
	meta, ok := strings.CutPrefix(line, "# ")
	if !ok {
		return p.sample(line)
	}
	word, rest, _ := strings.Cut(meta, " ")
	name, value, ok := strings.Cut(rest, " ")
	if !ok || !nameRule.MatchString(name) {
		return fmt.Errorf("metadata without a name or a value")
	}
	if name != p.name || p.inSamples {
		if p.families[name] {
			return fmt.Errorf("the family comes twice")
		}
		p.families[name] = true
		p.name, p.kind, p.unit, p.said, p.inSamples = name, "", "", map[string]bool{}, false
	}
	if p.said[word] {
		return fmt.Errorf("said twice")
	}
	p.said[word] = true
	switch word {
	case "TYPE":
		if p.kind = value; value != "gauge" && value != "info" && value != "summary" {
			return fmt.Errorf("type")
		}
	case "UNIT":
		if p.unit = value; !strings.HasSuffix(name, "_"+value) {
			return fmt.Errorf("the name does not end in its unit")
		}
	case "HELP":
		if strings.Contains(strings.NewReplacer(`\\`, "", `\"`, "", `\n`, "").Replace(value), `\`) {
			return fmt.Errorf("escape")
		}
	default:
		return fmt.Errorf("unknown metadata")
	}
	return nil
}

func (p *parser) sample(line string) error {
	m := sampleRule.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("no sample")
	}
	p.inSamples = true
	s := sample{name: m[1], labels: map[string]string{}, time: m[4]}
	want := p.name
	if p.kind == "info" {
		want += "_info"
	}
	if s.name != want {
		return fmt.Errorf("not of the family %s", p.name)
	}
	for rest := m[2]; rest != ""; {
		l := labelRule.FindStringSubmatch(rest)
		if l == nil {
			return fmt.Errorf("labels at %q", rest)
		}
		if _, twice := s.labels[l[1]]; twice || l[2] == "" || strings.HasPrefix(l[1], "__") {
			return fmt.Errorf("label %s", l[1])
		}
		s.labels[l[1]] = l[2]
		rest = rest[len(l[0]):]
		if l[3] == "," && rest == "" {
			return fmt.Errorf("a comma at the end")
		}
	}
	if key := s.name + fmt.Sprint(s.labels); p.series[key] {
		return fmt.Errorf("the series comes twice")
	} else {
		p.series[key] = true
	}
	var err error
	if s.value, err = strconv.ParseFloat(m[3], 64); err != nil || math.IsNaN(s.value) || math.IsInf(s.value, 0) {
		return fmt.Errorf("value")
	}
	if p.kind == "info" && s.value != 1 {
		return fmt.Errorf("an info that is not 1")
	}
	p.samples = append(p.samples, s)
	return nil
}

// The parser must be able to complain.
func TestParserComplains(t *testing.T) {
	const head = "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds A.\n"
	if got, err := parse(head + "a_seconds{x=\"1\"} 1 2\na_seconds{x=\"a\\\"b\"} 1.5e-09\n# EOF\n"); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{
		head + "a_seconds 1\n", head + "a_seconds 1\na_seconds 1\n# EOF\n", head + "b 1\n# EOF\n", head + "a_seconds{x=\"\"} 1\n# EOF\n",
		head + "a_seconds{x=\"a\"b\"} 1\n# EOF\n", head + "a_seconds NaN\n# EOF\n", head + "a_seconds{x=\"1\",} 1\n# EOF\n",
		"# TYPE a gauge\n# UNIT a seconds\n# EOF\n", "# TYPE a info\na_info 2\n# EOF\n", "# TYPE a info\na 1\n# EOF\n",
		head + "a_seconds 1\n# TYPE b gauge\nb 1\n" + head + "# EOF\n", "# TYPE a counter\n# EOF\n", "\n# EOF\n",
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("no complaint about %q", bad)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add(`a"b\c`)
	f.Add("x\n\xff\x00} 1")
	f.Fuzz(func(t *testing.T, s string) {
		e := exposition{}
		e.addSingleSample(family{name: "a", help: s}, 1, "x", s, "y", "z")
		if _, err := parse(e.String() + "# EOF\n"); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
