package detect

import "fmt"

// Result is how a proof ended.
type Result int

// Results. A mismatch fails what is measured under the claim; what is unproven is recorded. Doubtful is a cluster that runs
// what is claimed and is not set up as well as it could be: that is a condition of its numbers, and is recorded too.
const (
	Unproven Result = iota
	OK
	Mismatch
	Doubtful
)

var results = [...]string{"unproven", "ok", "mismatch", "doubtful"}

func (r Result) String() string { return results[r] }

// MarshalText makes JSON say the name.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name.
func (r *Result) UnmarshalText(text []byte) error {
	for i, name := range results {
		if name == string(text) {
			*r = Result(i)
			return nil
		}
	}
	return fmt.Errorf("unknown result of a proof %q", text)
}

// Proof is one claim held against what was seen.
type Proof struct {
	// What is claimed, and Where it was tried: a node, a pod or a path.
	What  string `json:"what"`
	Where string `json:"where,omitempty"`
	// Claimed and Seen are what the verdict says and what there was; Seen is "" if nothing could be seen.
	Claimed string `json:"claimed,omitempty"`
	Seen    string `json:"seen,omitempty"`
	Result  Result `json:"result"`
	// Why says what a mismatch or a doubt means, or for want of what a claim is unproven.
	Why string `json:"why,omitempty"`
}

func (p Proof) String() string {
	text := p.What
	if p.Where != "" {
		text += " (" + p.Where + ")"
	}
	text += ": " + p.Result.String()
	if p.Result == Mismatch || p.Result == Doubtful {
		text += fmt.Sprintf(": %s is claimed, %s is seen", p.Claimed, p.Seen)
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

// Mismatches returns those that disprove a claim.
func Mismatches(proofs []Proof) []Proof {
	var bad []Proof
	for _, p := range proofs {
		if p.Result == Mismatch {
			bad = append(bad, p)
		}
	}
	return bad
}
