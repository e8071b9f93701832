package selftest

import (
	"context"
	"fmt"

	"github.com/cnibench/cnibench/internal/env/lab"
)

// Assertion is one thing that a profile claims, and whether it is so.
type Assertion struct {
	// Profile is the profile's name.
	Profile string
	// ID is unique within the profile and the same from run to run, for example "source@pod-to-service/remote".
	ID string
	// Path is the path whose traffic was looked at, "" for a fact about nodes and pods.
	Path string
	// What says in words what is asserted.
	What string
	// Want is what must be found, Got what was, in the same form.
	Want, Got string
	OK        bool
}

// String returns the assertion in one line.
func (a Assertion) String() string {
	if a.OK {
		return fmt.Sprintf("%s %s: %s: %s", a.Profile, a.ID, a.What, a.Got)
	}
	return fmt.Sprintf("%s %s: %s: want %s, got %s", a.Profile, a.ID, a.What, a.Want, a.Got)
}

// Failed returns the assertions that do not hold.
func Failed(all []Assertion) []Assertion {
	var failed []Assertion
	for _, a := range all {
		if !a.OK {
			failed = append(failed, a)
		}
	}
	return failed
}

// Run tests one profile. It always returns at least one assertion; one that could not be looked into has failed. inst
// must stand still meanwhile: no other traffic may cross it. Different instances can be tested at the same time. When
// ctx ends, what is left fails with its cause.
func Run(ctx context.Context, inst *lab.Instance) []Assertion {
	if inst.Err != nil {
		return broken(inst, "up", "the profile stands", inst.Err)
	}
	want := expected(inst.Profile, inst.Spec.Expect())
	if inst.Spec.Lab.Family == lab.IPv6 {
		want = want.inIPv6()
	}
	if inst.Spec.Lab.TrafficPolicy == "Local" {
		want = want.keptLocal()
	}
	want.proxyNFT, want.proxyIPVS, want.policies = inst.Spec.ProxyNFT(), inst.Spec.ProxyIPVS(), inst.Spec.Lab.Policies
	want.testServices = inst.Service(lab.NoneService) != nil
	want.unbacked = want.unbacked || want.testServices && want.Programs != nil && want.Programs.Mute
	if inst.Spec.Balanced() {
		want = want.balanced()
	}
	return run(ctx, inst, want)
}

// broken is what there is to say of an instance as a whole.
func broken(inst *lab.Instance, id, what string, err error) []Assertion {
	return []Assertion{{Profile: string(inst.Name), ID: id, What: what, Want: "yes", Got: "error: " + err.Error()}}
}

// run holds an instance against a table.
func run(ctx context.Context, inst *lab.Instance, want expectation) []Assertion {
	s, err := open(inst, want)
	if err != nil {
		return broken(inst, "observable", "its namespaces can be looked into", err)
	}
	s.rehearse(ctx)
	var out []Assertion
	for _, c := range checks(want) {
		out = append(out, c.assert(ctx, s))
	}
	if err := s.close(); err != nil {
		out = append(out, broken(inst, "clean", "nothing stays behind", err)...)
	}
	return out
}
