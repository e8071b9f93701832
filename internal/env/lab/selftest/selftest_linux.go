package selftest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// Assertion is one claim about a profile, and whether it holds.
type Assertion struct {
	// Profile is the profile's name.
	Profile string
	// ID is unique within the profile and the same from run to run, for example "source@pod-to-service/remote".
	ID string
	// Path is the path of the traffic, "" for a fact about nodes and pods.
	Path string
	// What describes the claim.
	What      string
	Want, Got string
	OK        bool
}

// Failed returns the assertions that failed.
func Failed(all []Assertion) []Assertion {
	return slices.DeleteFunc(slices.Clone(all), func(a Assertion) bool { return a.OK })
}

// Run tests one instance. It returns at least one assertion; a probe with an error is a failed assertion. No other
// traffic may cross inst meanwhile. Different instances can be tested at the same time. When ctx ends, the remaining
// assertions fail with its cause.
func Run(ctx context.Context, inst *lab.Instance) []Assertion {
	if inst.Err != nil {
		return failedAssertion(inst, "up", "the profile is up", inst.Err)
	}
	want := newExpectation(inst.Profile, inst.Spec.Expect())
	if inst.Spec.Lab.Family == lab.IPv6 {
		want = want.withIPv6()
	}
	if inst.Spec.Lab.TrafficPolicy == condition.TrafficLocal {
		want = want.withLocalPolicy()
	}
	if inst.Spec.Lab.Conntrack == condition.ConntrackOff {
		want = want.withoutTracking()
	}
	if inst.Spec.Lab.BridgeNetfilter == condition.BridgeNetfilterOff {
		want = want.withUnfilteredBridge()
	}
	want.engine, want.policies = inst.Spec.ServiceEngine(), inst.Spec.Lab.Policies
	want.Agent = want.Agent && inst.Spec.Lab.Policies+inst.Spec.Lab.PoliciesUnselected > 0
	want.flowtable = inst.Spec.Flowtable()
	want.merges = inst.Spec.Lab.NIC == plan.NICWire && inst.Spec.Lab.GRO != condition.GROOff
	want.long = inst.Spec.Lab.BigTCP == condition.BigTCPOn
	want.plugged = inst.Spec.Plugged()
	want.testServices = inst.Service(lab.NoneService) != nil
	want.unbacked = want.unbacked || want.testServices && want.Programs != nil && want.Programs.Mute
	if inst.Spec.Balanced() {
		want = want.withBalancer()
	}
	return testInstance(ctx, inst, want)
}

// Connect adds the standing connections to an instance that has passed its test, and asserts that the nodes track them.
// It returns nil if the conditions have none.
func Connect(inst *lab.Instance) []Assertion {
	if inst.Spec.Lab.Connections == 0 {
		return nil
	}
	const id, what = "connections", "each node tracks the standing connections"
	tracked, err := inst.Connect()
	if err != nil {
		return failedAssertion(inst, id, what, err)
	}
	want := fmt.Sprintf("at least %d", inst.Spec.Lab.Connections)
	return []Assertion{{Profile: inst.Name.String(), ID: id, What: what, Want: want, Got: strconv.Itoa(tracked), OK: tracked >= inst.Spec.Lab.Connections}}
}

// failedAssertion returns a failed assertion about a whole instance.
func failedAssertion(inst *lab.Instance, id, what string, err error) []Assertion {
	return []Assertion{{Profile: inst.Name.String(), ID: id, What: what, Want: "yes", Got: "error: " + err.Error()}}
}

// testInstance compares an instance with a table of expectations.
func testInstance(ctx context.Context, inst *lab.Instance, want expectation) []Assertion {
	s, err := openScene(inst, want)
	if err != nil {
		return failedAssertion(inst, "observable", "its namespaces can be observed", err)
	}
	s.makeTraffic(ctx)
	var out []Assertion
	for _, c := range allChecks(want) {
		out = append(out, c.assert(ctx, s))
	}
	if err := s.close(); err != nil {
		out = append(out, failedAssertion(inst, "clean", "no connections or sockets are left", err)...)
	}
	return out
}
