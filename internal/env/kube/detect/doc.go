// Package detect finds out which dataplane a cluster runs, and proves it.
//
//	Read ─► Snapshot ─► Detect ─► Verdict ─► Look, Prove ─► Proofs ─► Facts
//	asks the API         pure      a claim     asks the nodes  what holds   for the result
//
// A configuration is a request: agents fall back to other modes, charts ignore keys, two CNIs lie over one another. So
// each setting of a Verdict has what was asked for and what is in force, each with where that was read, and what could
// be read nowhere is listed as unproven. What the settings of a CNI come to is package configcheck's judgement, which
// is asked twice: about what was asked for, and about that with what the agents themselves say laid over it.
//
// Read fails on no missing right: a resource that may not be read is a line of Unproven, and Detect goes on with what
// there is. Detect knows no cluster; everything it says can be tested with a Snapshot.
package detect
