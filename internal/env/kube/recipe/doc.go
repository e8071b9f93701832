// Package recipe installs CNIs. A recipe describes how to install the dataplane of a profile, with fixed versions, in
// several variants: Helm chart, operator, manifest, RKE2, kind.
//
// Recipes are data. A recipe is the second YAML document of a profile's file in package profile. The family's file in the
// same folder has what its recipes share. Render fills in values that depend on the cluster and returns actions in order.
// Write prints the actions as one YAML stream, Installer performs them.
//
//	data ─► Recipe ─► Render(Params) ─► []Action ─► Write      prints
//	                                             └► Installer  applies, records, waits, uninstalls
//
// Only Installer contacts a cluster. Package residue finds what earlier CNIs left on nodes.
package recipe
