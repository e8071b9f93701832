package detect

import "slices"

// ReadyNodes returns the names of the first n ready Linux nodes, in order. Cordoned nodes come last.
func ReadyNodes(nodes []Node, n int) []string {
	var names, cordoned []string
	for _, node := range nodes {
		if !node.Ready || !node.Linux() {
			continue
		}
		if node.Cordoned {
			cordoned = append(cordoned, node.Name)
		} else {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(cordoned)
	names = append(names, cordoned...)
	return names[:min(n, len(names))]
}
