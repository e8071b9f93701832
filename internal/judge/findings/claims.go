package findings

import (
	"bytes"
	_ "embed" // the published claims
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

//go:embed published.yaml
var published []byte

// Source is a publication.
type Source struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
	// Date is the date in the publication, "" if it has none.
	Date string `yaml:"date"`
	// Plan is the example plan that repeats its experiment.
	Plan string `yaml:"plan"`
	// Note is what a reader must know to judge its claims.
	Note string `yaml:"note"`
	// Differs lists what the plan in examples/exact cannot do as in the article; DiffersInLab lists what only the lab
	// cannot do.
	Differs      []string `yaml:"differs"`
	DiffersInLab []string `yaml:"differsInLab"`
}

// Claim is a statement of a publication in a form that a result can decide. Exactly one of Ratio, Order, Similar, Bound
// and Untestable is set.
type Claim struct {
	ID     string `yaml:"id"`
	Source string `yaml:"source"`
	// Statement is the claim in our words, with the publication's numbers.
	Statement string `yaml:"statement"`
	// Metric, Workload and Paths select the cells; the claim must be true on every path.
	Metric   string        `yaml:"metric"`
	Workload plan.Workload `yaml:"workload"`
	Paths    []plan.Path   `yaml:"paths"`
	Ratio    *Ratio        `yaml:"ratio"`
	// Order lists groups of profiles from best to worst: every member of a group is better than every member of the
	// next.
	Order [][]string `yaml:"order"`
	// Similar lists profiles of which no two differ by more than Within.
	Similar []string `yaml:"similar"`
	// Within is the share that Similar allows, (0,1); default 0.1.
	Within float64 `yaml:"within"`
	Bound  *Bound  `yaml:"bound"`
	// Untestable is why no result of this tool can decide the claim.
	Untestable string `yaml:"untestable"`
	// Note is what the reader should know in addition to the verdict.
	Note string `yaml:"note"`
}

// Ratio claims the ratio of a cell to another.
type Ratio struct {
	Profile string `yaml:"profile"`
	Against string `yaml:"against"`
	// AgainstPath and AgainstWorkload are the second cell's, if they differ from the claim's.
	AgainstPath     plan.Path     `yaml:"againstPath"`
	AgainstWorkload plan.Workload `yaml:"againstWorkload"`
	// Low and High bound the claimed ratio, equal for a single number. If one of them is 0, only a direction is
	// claimed: more than Low times, or less than High times.
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
	// Rates are the two rates of the ratio, in base units, if the publication has them.
	Rates []float64 `yaml:"rates"`
}

// Bound claims that a cell's value is at most Most, in the metric's base unit.
type Bound struct {
	Profile string  `yaml:"profile"`
	Most    float64 `yaml:"most"`
}

// Claims is a set of claims with their sources.
type Claims struct {
	Sources []Source `yaml:"sources"`
	Claims  []Claim  `yaml:"claims"`
}

// Published returns the claims of this version. A test checks that they can be read.
func Published() Claims {
	c, err := Read("published.yaml", bytes.NewReader(published))
	if err != nil {
		panic("findings: " + err.Error())
	}
	return c
}

// Read reads the file of claims called name. It fails with position.Faults, which has every mistake and its line.
func Read(name string, r io.Reader) (Claims, error) {
	text, err := io.ReadAll(io.LimitReader(r, position.MaxFile+1))
	if err != nil {
		return Claims{}, fmt.Errorf("read claims: %w", err)
	}
	var c Claims
	d, root := position.NewDecoder(name, string(text), "sources and claims")
	if root != nil {
		d.Struct(&c)("", root)
	}
	all := d.Faults()
	if root != nil {
		all = append(all, d.Place(c.check())...)
	}
	all.Sort()
	return c, all.Err()
}

// check returns what is wrong with the claims as position.Faults.
func (c Claims) check() error {
	var fs position.Faults
	if len(c.Claims) == 0 {
		fs.Add("claims", "the list is empty")
	}
	seen := map[string]bool{}
	for i, claim := range c.Claims {
		field := fmt.Sprintf("claims.%d", i)
		add := func(format string, args ...any) {
			fs.Add(field, "claim %q: %s", claim.ID, fmt.Sprintf(format, args...))
		}
		if claim.ID == "" || seen[claim.ID] {
			add("the id is missing or given twice")
		}
		seen[claim.ID] = true
		if !slices.ContainsFunc(c.Sources, func(s Source) bool { return s.ID == claim.Source }) {
			add("there is no source %q", claim.Source)
		}
		for _, fault := range claim.faults() {
			add("%s", fault)
		}
	}
	return fs.Err()
}

// faults lists the faults within a claim.
func (c Claim) faults() []string {
	var fs []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			fs = append(fs, fmt.Sprintf(format, args...))
		}
	}
	add(strings.TrimSpace(c.Statement) == "", "it has no statement")
	forms := 0
	for _, given := range []bool{c.Ratio != nil, c.Order != nil, c.Similar != nil, c.Bound != nil, c.Untestable != ""} {
		if given {
			forms++
		}
	}
	add(forms != 1, "want exactly one of ratio, order, similar, bound, untestable")
	if c.Untestable != "" {
		return fs
	}
	_, known := metric.Lookup(c.Metric)
	add(!known, "unknown metric %q", c.Metric)
	add(len(c.Paths) == 0, "it has no path")
	add(c.Within < 0 || c.Within >= 1, "within %v is out of range: want more than 0 and less than 1", c.Within)
	add(c.Workload.Spec == nil, "it has no workload")
	if r := c.Ratio; r != nil {
		positive := r.Low > 0 && r.High >= 0 || r.Low == 0 && r.High > 0
		add(!positive || r.Low > 0 && r.High > 0 && r.High < r.Low, "ratio %v to %v: want 0 < low <= high, or one of them", r.Low, r.High)
		add(len(r.Rates) != 0 && (len(r.Rates) != 2 || !(r.Rates[0] > 0) || !(r.Rates[1] > 0)), "rates %v: want two above 0, or none", r.Rates)
		add(r.Profile == "" || r.Against == "", "a ratio needs a profile and one to stand against")
	}
	add(c.Order != nil && len(c.Order) < 2, "an order needs two groups")
	add(c.Similar != nil && len(c.Similar) < 2, "similar needs two profiles")
	return fs
}
