// Package kubetext parses texts in the formats of Kubernetes: names, labels, tolerations, references to images and
// Secrets.
package kubetext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// toleration describes the taints that a pod tolerates.
type toleration struct {
	Key, Value, Effect string
	// Exists means that the key is tolerated with any value.
	Exists bool
}

// effects are the possible effects of a taint.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// ParseToleration parses key[=value][:effect]. The key "*" tolerates every taint. It fails for an unknown effect, a
// missing key, and a "*" with a value.
func ParseToleration(s string) (toleration, error) {
	rest, effect, has := strings.Cut(s, ":")
	if has && !slices.Contains(effects, effect) {
		return toleration{}, fmt.Errorf("toleration %q: effect %q is not one of %s", s, effect, strings.Join(effects, ", "))
	}
	key, value, valued := strings.Cut(rest, "=")
	if key == "" || strings.ContainsAny(rest, " \t") {
		return toleration{}, fmt.Errorf("toleration %q: want key[=value][:effect]", s)
	}
	if key == "*" {
		if valued {
			return toleration{}, fmt.Errorf("toleration %q: * tolerates every taint and takes no value", s)
		}
		key = ""
	}
	return toleration{Key: key, Value: value, Effect: effect, Exists: !valued}, nil
}

// ParseLabels parses name=value,name=value. It fails for a part without a name or without "=".
func ParseLabels(s string) (map[string]string, error) {
	labels := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not name=value", part)
		}
		labels[name] = value
	}
	return labels, nil
}

// ParseAnnotations parses name=value,prefix/name=value. A value may contain commas: text after a comma begins another
// annotation only if it is itself prefix/name=value. It fails for a part that may be either.
func ParseAnnotations(s string) (map[string]string, error) {
	all := map[string]string{}
	last := ""
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch {
		case ok && name != "" && (last == "" || strings.Contains(name, "/")):
			all[name], last = value, name
		case ok && last != "" && !strings.Contains(last, "/"):
			return nil, fmt.Errorf("%q may be part of the value of %s, or another annotation: say several without a prefix in a plan file, "+
				"kubernetes.serviceAnnotations", strings.TrimSpace(part), last)
		case last != "":
			all[last] += "," + part
		default:
			return nil, fmt.Errorf("%q is not name=value or prefix/name=value", part)
		}
	}
	return all, nil
}

// namespaceName matches a valid name of a namespace.
var namespaceName = pattern.New(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseSecret parses the reference to a Secret: "namespace/name" or "name". A namespace of "" means the namespace of
// the kubeconfig's context. It fails for an invalid name.
func ParseSecret(s string) (namespace, name string, err error) {
	namespace, name, in := strings.Cut(s, "/")
	if !in {
		namespace, name = "", s
	}
	if in && !namespaceName.MatchString(namespace) || !IsSubdomain(name) {
		return "", "", fmt.Errorf("image pull Secret %q: want name, or namespace/name", s)
	}
	return namespace, name, nil
}

// SecretFaults returns one error for each fault in the references to a run's image pull Secrets. The run copies all of
// them into one namespace, so two Secrets must not have the same name.
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

// Patterns of valid names in Kubernetes. The library of Kubernetes has such checks, but only package kube may use it.
var (
	subdomain = pattern.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	labelWord = pattern.New(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
)

// IsSubdomain reports whether s is a valid name of an object, such as a node.
func IsSubdomain(s string) bool { return len(s) <= 253 && subdomain.MatchString(s) }

// IsQualified reports whether s is a valid name of a label or a class. It may have a prefix, such as
// node.kubernetes.io/pool.
func IsQualified(s string) bool {
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		return labelWord.MatchString(s)
	}
	return IsSubdomain(prefix) && labelWord.MatchString(name)
}

// IsLabelValue reports whether s is a valid value of a label.
func IsLabelValue(s string) bool { return s == "" || labelWord.MatchString(s) }

// ImageReference matches REGISTRY/PATH:TAG@DIGEST, of which only PATH is required. The part before the first slash is a
// registry if it has a dot or a port or is localhost, as for a kubelet. PATH must be in lower case.
var ImageReference = pattern.New(`^(?:` +
	`(?:localhost|` + hostLabel + `(?:\.` + hostLabel + `)+)(?::[0-9]+)?/|` + hostLabel + `:[0-9]+/|\[[0-9A-Fa-f:]+\](?::[0-9]+)?/)?` +
	pathPart + `(?:/` + pathPart + `)*` + `(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` +
	`(?:@[a-z][a-z0-9]*(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,})?$`)

const (
	hostLabel = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	pathPart  = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
)
