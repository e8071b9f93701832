package plan

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// churn describes changes of one kind of object at a constant rate during the measurement. The zero value changes
// nothing.
type churn struct {
	// Of is the kind of the objects that change.
	Of ChurnKind
	// Rate is the number of changes per second.
	Rate float64
}

// ChurnKind is a kind of object that changes.
type ChurnKind string

const (
	// ChurnEndpoints replaces the endpoint of one Service by another, and back.
	ChurnEndpoints ChurnKind = "endpoints"
	// ChurnServices removes one Service and adds it again.
	ChurnServices ChurnKind = "services"
	// ChurnPolicies adds a policy that selects every pod and removes it again.
	ChurnPolicies ChurnKind = "policies"
)

// churnKinds has every ChurnKind.
var churnKinds = []ChurnKind{ChurnEndpoints, ChurnServices, ChurnPolicies}

// Bounds of churn.Rate, and the text of a churn that changes nothing.
const (
	minChurnRate = 0.1
	maxChurnRate = 1000
	noChurn      = "none"
)

// IsZero reports whether c changes nothing.
func (c churn) IsZero() bool { return c.Of == "" }

// String returns the text from which parseChurn returns c.
func (c churn) String() string {
	if c.IsZero() {
		return noChurn
	}
	return string(c.Of) + "=" + strconv.FormatFloat(c.Rate, 'f', -1, 64) + "/s"
}

// MarshalText returns String.
func (c churn) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText decodes what MarshalText encodes. It fails as parseChurn does.
func (c *churn) UnmarshalText(b []byte) (err error) {
	*c, err = parseChurn(string(b))
	return err
}

// parseChurn parses KIND=RATE/s such as services=10/s. A rate without a kind, such as 10/s, is for endpoints. "none"
// and "" mean no churn. It fails for an unknown kind and for a rate that is out of range.
func parseChurn(text string) (churn, error) {
	if text == noChurn || text == "" {
		return churn{}, nil
	}
	kind, rate, ok := strings.Cut(strings.ReplaceAll(text, " ", ""), "=")
	if !ok {
		kind, rate = string(ChurnEndpoints), kind
	}
	var wrong []string
	kind, err := parseWord(kind, Texts(churnKinds)...)
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	per, err := strconv.ParseFloat(strings.TrimSuffix(rate, "/s"), 64)
	switch {
	case err != nil || strings.ContainsAny(rate, "xXpP_"):
		wrong = append(wrong, fmt.Sprintf("%q is not a rate such as 10/s", rate))
	case !(per >= minChurnRate && per <= maxChurnRate):
		wrong = append(wrong, fmt.Sprintf("%s is out of range: want %v to %v changes per second", rate, minChurnRate, maxChurnRate))
	}
	if wrong != nil {
		return churn{}, fmt.Errorf("%s: want KIND=RATE/s such as services=10/s, or none", strings.Join(wrong, "; "))
	}
	return churn{ChurnKind(kind), math.Round(per*1e3) / 1e3}, nil
}

// churns are the values of the setting lab.churn.
var churns = values[churn]{parse: parseChurn, format: churn.String, schema: position.Text,
	rang: fmt.Sprintf("endpoints, services or policies, each =%v/s to %v/s, or none", minChurnRate, maxChurnRate)}

// Unchanged returns why objects of a kind cannot change under a profile. It returns "" if they can, or if the kind is
// "".
func (kind ChurnKind) Unchanged(p profile.Profile, l Lab) string {
	switch {
	case kind == "":
	case kind == ChurnPolicies && p.Policy == "none":
		return p.Name + " enforces no NetworkPolicies and has no use for churn of policies"
	case kind == ChurnPolicies && p.Policy == "aws-agent" && l.Policies+l.PoliciesUnselected == 0:
		return p.Name + " has its policy agent with policies only: take policies=1 or policies-unselected=1, too"
	case kind == ChurnPolicies:
	case p.Services == "none":
		return p.Name + " serves no Services and has no use for churn of " + string(kind)
	case kind == ChurnServices && l.ServiceProxy == condition.ProxyIPVS && p.Services == "kube-proxy" && p.Policy != "calico-nftables":
		return p.Name + ": the lab changes endpoints, but no Services under kube-proxy in ipvs mode: take churn=endpoints"
	}
	return ""
}

// Unchanged returns why the objects of v's churn cannot change. It returns "" if they can, or if there is no churn.
func (v Variant) Unchanged(run Lab) string {
	p, known := profile.Lookup(v.Profile())
	if l := v.Lab(run); known {
		return l.Churn.Of.Unchanged(p, l)
	}
	return ""
}

// checkChurn adds a fault if the churn of v does not fit the profile, a workload of the plan or the length of a window.
func (fs *faults) checkChurn(p Plan, field string, v Variant) {
	if v.Lab(p.Lab).Churn.IsZero() {
		return
	}
	if why := v.Unchanged(p.Lab); why != "" {
		if v.Profile() != profile.Raw || v.setsCondition("churn") { // as the baseline it is measured without churn
			fs.Add(field, "%s: %s; leave it out", v, why)
		}
		return
	}
	rate := v.Lab(p.Lab).Churn.Rate
	for _, w := range p.Workloads {
		if window := cmp.Or(w.Window, p.Duration); window != 0 && rate*window.Seconds() < 1 {
			fs.Add(field, "%s: a window of %s has no change: give a longer window (--duration) or a higher rate", v, window)
		}
		why := w.kindEntry().unchanged
		if w.Traits().Roll {
			why = "%s changes endpoints itself: measure it without churn"
		}
		if why != "" {
			fs.Add(field, "%s: "+why, v, w)
		}
	}
}

// changesFit is how many changes there are in the window that Fit chooses for a churn. longestChurnFit bounds that
// window.
const (
	changesFit      = 10
	longestChurnFit = 10 * time.Second
)

// leastChurnWindow returns the shortest window that Fit may choose for the plan's churn. It returns 0 without churn.
func (p Plan) leastChurnWindow() time.Duration {
	var fit time.Duration
	for _, v := range p.Variants() {
		if c := v.Lab(p.Lab).Churn; !c.IsZero() {
			fit = max(fit, min(time.Duration(changesFit/c.Rate*float64(time.Second)), longestChurnFit))
		}
	}
	return fit.Round(time.Millisecond)
}
