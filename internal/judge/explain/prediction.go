package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Removal is a piece that a dataplane can do without.
type Removal struct {
	// Name is the piece's name. Without describes how the dataplane works without it.
	Name, Without string
	// parts are the parts that disappear with it on every path, neighbours those that disappear only between pods of
	// one node.
	parts, neighbours []string
	// variant returns v without the piece. It fails if there is no such variant.
	variant func(plan.Variant) (plan.Variant, error)
}

var removals = []Removal{
	{"conntrack", "without connection tracking", []string{"conntrack", "nat"}, nil,
		func(v plan.Variant) (plan.Variant, error) { return v.Under("conntrack", "off") }},
	{"tunnel", "without the tunnel", []string{"vxlan", "wireguard"}, nil, variantWithoutTunnel},
	// The node's stack sees no packet between pods of one node: the bridge calls all of their netfilter hooks.
	{"br_netfilter", "without netfilter on bridges", []string{"br_netfilter"},
		[]string{"conntrack", "nat", "rules prerouting", "rules forward", "rules postrouting"}, variantWithoutNetfilter},
}

// Removals returns the pieces that a dataplane can do without: conntrack, tunnel, br_netfilter.
func Removals() []Removal { return slices.Clone(removals) }

// partsOn returns the parts that are removed on a path.
func (r Removal) partsOn(p plan.Path) []string {
	if p.Neighbours() {
		return slices.Concat(r.parts, r.neighbours)
	}
	return r.parts
}

// From returns the variant that differs from v only by the missing piece. It fails if the lab has no such variant.
func (r Removal) From(v plan.Variant) (plan.Variant, error) { return r.variant(v) }

// variantWithoutNetfilter returns v without netfilter on bridges. It fails if no pod of the profile is on a bridge.
func variantWithoutNetfilter(v plan.Variant) (plan.Variant, error) {
	if p, known := profile.Lookup(v.Profile()); known && !p.FiltersBridge() {
		return plan.Variant{}, fmt.Errorf("no pod of profile %q is on a bridge", p.Name)
	}
	return v.Under("bridge-netfilter", "off")
}

// routes maps profiles with a tunnel to the profiles that differ only by not having one.
var routes = map[string]string{
	"flannel-vxlan": "flannel-host-gw", "flannel-wireguard": "flannel-host-gw", "calico-vxlan": "calico-underlay",
	"calico-ipip": "calico-underlay", "cilium-vxlan": "cilium-native",
}

// variantWithoutTunnel returns v with the profile in routes that has no tunnel. It fails if there is none.
func variantWithoutTunnel(v plan.Variant) (plan.Variant, error) {
	name := routes[v.Profile()]
	if name == "" {
		return plan.Variant{}, fmt.Errorf("profile %q has no counterpart without a tunnel", v.Profile())
	}
	return v.Named(name), nil
}

// Prediction has the predicted and the measured cost of a variant. The prediction comes from the parts of another
// variant.
type Prediction struct {
	Remove    string   `json:"remove"`
	Predicted Interval `json:"predicted"`
	Measured  Interval `json:"measured"`
	// Agree means that the two do not differ beyond their errors.
	Agree bool `json:"agree"`

	removal Removal
}

// Predict sets Prediction: the first side's predicted cost without a piece, compared with the second side.
func (d *Difference) Predict(r Removal) {
	a, gone := d.A, r.partsOn(d.A.Path)
	parts := a.sumParts(gone)
	time, variance, free := parts.time, parts.variance, parts.free
	p := Prediction{Remove: r.Name, Measured: d.B.Demand, removal: r}
	// The parts have their own error in addition to the demand's, which both have in common.
	var share float64
	if a.Demand.Value > 0 {
		share = time / a.Demand.Value
	}
	variance += (1 - 2*share) * a.deviation * a.deviation
	free = max(2, free)
	p.Predicted = intervalAround(a.Demand.Value-time, math.Sqrt(max(0, variance)), free)
	reach := stat.Reach(confidence, free) * math.Sqrt(max(0, variance)+d.B.deviation*d.B.deviation)
	p.Agree = math.Abs(p.Predicted.Value-p.Measured.Value) <= reach
	d.Prediction = &p
}

// findings returns sentences about the prediction. If it does not agree with the measurement, they name up to three
// other parts that changed.
func (p Prediction) findings(d Difference, scale number.Scale) []string {
	said := []string{fmt.Sprintf("By its parts, %s costs %s %s %s (%s to %s). Measured: %s (%s to %s).", d.A.Name(),
		scale.Format(p.Predicted.Value), scale.Unit, p.removal.Without, scale.Format(p.Predicted.Low), scale.Format(p.Predicted.High),
		scale.Format(p.Measured.Value), scale.Format(p.Measured.Low), scale.Format(p.Measured.High))}
	if p.Agree {
		return append(said, "Prediction and measurement agree within their errors.")
	}
	var others []string
	for _, c := range d.Changes {
		if !c.Noise && !slices.Contains(p.removal.partsOn(d.A.Path), c.ID) && len(others) < 3 {
			others = append(others, fmt.Sprintf("%s (%s)", c.Title, scale.Signed(c.By.Value)))
		}
	}
	off := fmt.Sprintf("Prediction and measurement differ by %s %s", scale.Format(math.Abs(p.Measured.Value-p.Predicted.Value)), scale.Unit)
	if len(others) > 0 {
		off += ": other parts changed too, " + strings.Join(others, ", ")
	}
	return append(said, off+".")
}
