// Package recipe installs CNIs: for each profile that exists on a cluster it knows what has to be applied, in the ways
// that people install it (Helm chart, operator, manifest, RKE2, kind), with pinned versions.
//
// A recipe is data: the second document of a profile's file in package profile. The family's file beside it holds what its
// recipes share, with pinned versions. Render fills in what depends on the cluster and yields actions in order; Write
// prints them as one YAML stream, and Installer applies the same.
//
//	data ─► Recipe ─► Render(Params) ─► []Action ─► Write      what would be applied
//	                                             └► Installer  applied, recorded, waited for, uninstalled
//
// All but Installer is pure. What an earlier CNI left on the nodes is the subject of package residue.
package recipe
