package plan

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// namespaceName is a namespace's name as Kubernetes takes it.
var namespaceName = pattern.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseSecret reads the reference to a Secret, "namespace/name", or "name" with the namespace "" for that of the
// kubeconfig's context.
func ParseSecret(s string) (namespace, name string, err error) {
	namespace, name, in := strings.Cut(s, "/")
	if !in {
		namespace, name = "", s
	}
	if in && !namespaceName.MatchString(namespace) || !isSubdomain(name) {
		return "", "", fmt.Errorf("image pull Secret %q: want name, or namespace/name", s)
	}
	return namespace, name, nil
}

// SecretFaults returns what is wrong with the image pull Secrets of one run, each fault for itself: it has copies of all of
// them side by side, under their names.
func SecretFaults(refs []string) []error {
	var faults []error
	taken := map[string]string{}
	for _, ref := range refs {
		_, name, err := ParseSecret(ref)
		switch other, again := taken[name]; {
		case err != nil:
			faults = append(faults, err)
		case again:
			faults = append(faults, fmt.Errorf("image pull Secrets %q and %q: the copies of both would be called %s", other, ref, name))
		default:
			taken[name] = ref
		}
	}
	return faults
}
