package diagnose

import (
	_ "embed" // the page
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// Schema names the JSON format of an Answer.
const Schema = "cnibench.diagnosis/v1"

// Verdict is the answer in a word.
type Verdict string

// The verdicts: the network is fine, or which component is at fault. Undecided means that evidence is missing.
const (
	Fine        Verdict = "fine"
	Node        Verdict = "node"
	CNI         Verdict = "cni"
	Service     Verdict = "service"
	Application Verdict = "application"
	Tester      Verdict = "prober"
	Resolver    Verdict = "resolver"
	Undecided   Verdict = "undecided"
)

// State is the result of a rule.
type State string

// The states of a statement: the rule found a fault, found none, or had too little evidence.
const (
	Fault   State = "fault"
	Clear   State = "clear"
	Unknown State = "unknown"
)

// Statement is the result of one rule, with the measurement that it rests on.
type Statement struct {
	Rule  string `json:"rule"`
	State State  `json:"state"`
	// Verdict is the answer if this fault is the cause.
	Verdict Verdict `json:"verdict,omitempty"`
	// Where names the path or the place. Saw is the measurement.
	Where string `json:"where,omitempty"`
	Saw   string `json:"saw"`
	// Proven means that a counter or a setting shows the cause itself, and not only its effect.
	Proven bool `json:"proven,omitempty"`
	// Title, Why and Do are the rule's texts on page.md. Why and Do are "" unless State is Fault.
	Title string `json:"title"`
	Why   string `json:"why,omitempty"`
	Do    string `json:"do,omitempty"`
}

// Answer is the diagnosis.
type Answer struct {
	Schema  string  `json:"schema"`
	Profile string  `json:"profile,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Cause is the rule that gave the verdict, "" without a fault.
	Cause string `json:"cause,omitempty"`
	// Text is the answer in a sentence.
	// Confidence is "high", "medium" or "low"; Sure is the reason.
	Text       string `json:"answer"`
	Confidence string `json:"confidence"`
	Sure       string `json:"confidence_because"`
	// Next are the next steps.
	Next []string `json:"next"`
	// Measured are the numbers of the paths.
	Measured []Number `json:"measured"`
	// Statements has the results of all rules in their order. If there is a fault, the cause's faults come first, then other
	// faults, then unknown results.
	Statements []Statement `json:"statements"`
	// Missing lists what could not be measured.
	Missing []string `json:"missing,omitempty"`
}

// Number is the median of a metric on a path, in base units. Spread is the largest distance of a trial's value from it, as a
// share of the median; N counts the trials.
type Number struct {
	Path   plan.Path `json:"path"`
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Spread float64   `json:"spread"`
	N      int       `json:"n"`
}

// page is docs/reference/diagnose.md, which describes each rule in the order of rules.
//
//go:generate cp page.md ../../../docs/reference/diagnose.md
//go:embed page.md
var page string

// words returns the descriptions of the rules, parsed from page.
var words = sync.OnceValue(func() finding.Rules { return finding.ParseRules(page) })

// rule is one question about the evidence. find returns a statement for each fault; without a fault, it returns one
// statement with the state Clear or Unknown.
type rule struct {
	id   string
	find func(*Evidence) []Statement
}

// rules lists causes before their effects: the first rule that finds a fault gives the verdict.
var rules = []rule{
	{"cpu-limit", judgeCPULimit}, {"cpu-steal", judgeCPUSteal}, {"checksum", judgeDamagedPackets}, {"mtu", judgeMTUBlackHole}, {"conntrack-full", judgeConntrackFull},
	{"unreachable", judgeUnreachablePaths}, {"named", judgeNamedTarget}, {"backend", judgeUnequalBackends}, {"shaper", judgeShapers}, {"conntrack-race", judgeConntrackRace}, {"loss", judgePacketLoss},
	{"round-trip", judgeRoundTrip}, {"names", judgeResolutions}, {"drops", judgeDeviceDrops}, {"asymmetric", judgeAsymmetricPaths}, {"proxy-modes", judgeProxyModes}, {"starved", judgeProber}, {"rate", judgeHostStreamRate},
	{"overhead", judgePodOverhead}, {"service", judgeSlowService},
}

// Judge applies all rules to e and returns the answer. It removes values from e: the times of workloads that were not
// sent on all paths.
func Judge(e *Evidence) Answer {
	for kind := range e.barred { // a workload that was not sent on all paths is not used to compare times
		for _, t := range e.Paths {
			maps.DeleteFunc(t.Values, func(name string, _ []float64) bool { return strings.HasPrefix(name, kind+" ") })
		}
	}
	a := Answer{Schema: Schema, Missing: e.Missing, Measured: e.mainNumbers()}
	for _, r := range rules {
		for _, s := range r.find(e) {
			w := words().Of(r.id)
			s.Rule, s.Title, s.Why, s.Do = r.id, w.Title, w.Why, w.Do
			if s.State != Fault {
				s.Why, s.Do = "", ""
			}
			a.Statements = append(a.Statements, s)
		}
	}
	at := slices.IndexFunc(a.Statements, func(s Statement) bool { return s.State == Fault })
	if at < 0 {
		a.setNoFault(e)
		return a
	}
	s := a.Statements[at]
	a.Verdict, a.Cause, a.Next = s.Verdict, s.Rule, []string{s.Do}
	a.Text = fmt.Sprintf("%s: %s: %s", lead[s.Verdict], s.Title, s.Saw)
	if s.Where != "" {
		a.Text = fmt.Sprintf("%s: %s (%s): %s", lead[s.Verdict], s.Title, s.Where, s.Saw)
	}
	a.setConfidence(s)
	// The statements behind the answer come first, the others in the order of the rules.
	slices.SortStableFunc(a.Statements, func(x, y Statement) int { return statementRank(x, s) - statementRank(y, s) })
	return a
}

// lead has the first words of an answer, by verdict.
var lead = map[Verdict]string{
	Fine: "The network is fine", Node: "It is not the CNI, it is the node or the network below", CNI: "It is the CNI", Service: "It is the Service",
	Application: "It is not the network, it is what should answer", Tester: "It is not the network: the prober had no CPU", Resolver: "It is the cluster's resolver (DNS)", Undecided: "Undecided",
}

func statementRank(x, cause Statement) int {
	switch {
	case x.Rule == cause.Rule && x.State == Fault:
		return 0
	case x.State == Fault:
		return 1
	case x.State == Unknown:
		return 2
	}
	return 3
}

// setConfidence sets Confidence and its reason Sure. It is high if the cause is proven and other rules state at most
// two faults. Otherwise it is low if they state two or more, and medium if they state fewer.
func (a *Answer) setConfidence(cause Statement) {
	others := len(each.Where(a.Statements, func(s Statement) bool { return s.State == Fault && s.Rule != cause.Rule }))
	switch {
	case cause.Proven && others < 3:
		a.Confidence, a.Sure = "high", "a counter or a setting shows the cause itself"
	case others > 1:
		a.Confidence, a.Sure = "low", "other rules found faults, too"
	default:
		a.Confidence, a.Sure = "medium", "the effect was measured beside a path that does not have it, and not the cause itself"
	}
}

// setNoFault sets the answer if no rule found a fault: Fine if the host and pod paths were measured and every needed
// rule has a result, otherwise Undecided.
func (a *Answer) setNoFault(e *Evidence) {
	unknown := each.Where(a.Statements, func(s Statement) bool { return s.State == Unknown && slices.Contains(needed, s.Rule) })
	open := each.Of(unknown, func(s Statement) string { return s.Rule + ": " + s.Saw })
	_, host, hostOK := e.tripTimes(HostPath)
	_, pod, podOK := e.tripTimes(PodPath)
	switch {
	case !hostOK || !podOK:
		a.Verdict, a.Text = Undecided, lead[Undecided]+": a path was not measured, so that nothing can be compared"
		a.Next = []string{"read what could not be measured below, and diagnose again"}
	case len(open) > 0:
		a.Verdict, a.Text = Undecided, lead[Undecided]+": "+open[0]
		a.Next = []string{"diagnose again while the nodes are less busy: the rules that are open need an undisturbed prober"}
		switch {
		case unknown[0].Rule == "named":
			a.Next = []string{words().Of("named").Do}
		case slices.ContainsFunc(e.Sizes, Size.hasClosedPort):
			a.Next = []string{"read the firewall of the place and the NetworkPolicies that select it; let UDP and TCP ports 19412 and 19413 pass, and diagnose again"}
		}
	default:
		a.Verdict = Fine
		a.Text = fmt.Sprintf("%s: a request between pods takes %s where one between hosts takes %s, and no rule found a fault", lead[Fine], formatNanoseconds(pod), formatNanoseconds(host))
		a.Next = []string{"look at the application: its own CPU limit, its resolver, its connection pool"}
	}
	a.Confidence, a.Sure = "medium", fmt.Sprintf("%d rules were asked, each with a measurement", len(rules))
	if a.Verdict == Undecided {
		a.Confidence, a.Sure = "low", "what is open would decide"
	}
}

// needed lists the rules that must have a result before the answer is fine.
var needed = []string{"unreachable", "named", "loss", "round-trip", "overhead"}
