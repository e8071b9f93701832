package kube

// Location says how to reach a cluster. Empty fields follow kubectl's rules.
type Location struct{ Kubeconfig, Context string }

// Flags returns the flags of a command for this cluster, each with a space before it.
func (l Location) Flags() string {
	var flags string
	if l.Context != "" {
		flags += " --context " + l.Context
	}
	if l.Kubeconfig != "" {
		flags += " --kubeconfig " + l.Kubeconfig
	}
	return flags
}
