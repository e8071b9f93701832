package detect

import "fmt"

// Result is how a proof ended.
type Result int

// Results. A mismatch fails a run; the others are recorded. Doubtful means that the claim holds and the cluster's
// configuration is poor, which affects its numbers.
const (
	Unproven Result = iota
	OK
	Mismatch
	Doubtful
)

var results = [...]string{"unproven", "ok", "mismatch", "doubtful"}

func (r Result) String() string { return results[r] }

// MarshalText returns the name.
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Proof compares one claim with what was seen.
type Proof struct {
	// What is the subject, Where the place: a node, a pod or a path.
	What  string `json:"what"`
	Where string `json:"where,omitempty"`
	// Claimed is the verdict's value, Seen the value in place; Seen is "" if nothing could be seen.
	Claimed string `json:"claimed,omitempty"`
	Seen    string `json:"seen,omitempty"`
	Result  Result `json:"result"`
	// Why explains a result that is not ok.
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

// Mismatches returns the proofs that disprove a claim.
func Mismatches(proofs []Proof) []Proof {
	var bad []Proof
	for _, p := range proofs {
		if p.Result == Mismatch {
			bad = append(bad, p)
		}
	}
	return bad
}
