// Package recipe installs CNIs. A recipe has the objects to apply for a profile, in several variants (Helm chart,
// operator, manifest, RKE2, kind), with pinned versions.
//
// A recipe is data: the second document of a profile's file in package profile. The family's file next to it holds what
// its recipes share. Render fills in values that depend on the cluster and returns actions in order. Write prints them
// as one YAML stream, Installer applies them.
//
//	data ─► Recipe ─► Render(Params) ─► []Action ─► Write      prints
//	                                             └► Installer  applies, records, waits, uninstalls
//
// All but Installer is pure. Package residue finds what earlier CNIs left on nodes.
package recipe
