// Package detect finds out which dataplane a cluster runs, and proves it.
//
//	Read ─► Snapshot ─► Detect ─► Verdict ─► Prove ───────► Proofs ─► Facts
//	asks the API         pure      a claim     asks the nodes  what holds   for the result
//
// A configuration is only a request: agents fall back to other modes, charts ignore keys, and a cluster can have two
// CNIs. So each setting of a Verdict has the value asked for and the value in force, each with its source. What could
// not be read is listed as unproven. Package config judges a CNI's objects: once as they are, and once with the agents'
// own status over them.
//
// Read does not fail for lack of a right: it lists the resource in Unproven. Detect contacts no cluster, so that tests
// judge Snapshots.
package detect
