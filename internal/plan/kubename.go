package plan

import (
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// What Kubernetes takes as names. Its own checks are in a library that no package but kube may use.
var (
	subdomain = pattern.New(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	labelWord = pattern.New(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
)

// isSubdomain says whether s can name an object, such as a node.
func isSubdomain(s string) bool { return len(s) <= 253 && subdomain.MatchString(s) }

// isQualified says whether s can name a label or a class: name, or prefix/name such as node.kubernetes.io/pool.
func isQualified(s string) bool {
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		return labelWord.MatchString(s)
	}
	return isSubdomain(prefix) && labelWord.MatchString(name)
}

// isLabelValue says whether s can be the value of a label.
func isLabelValue(s string) bool { return s == "" || labelWord.MatchString(s) }

// imageReference is REGISTRY/PATH:TAG@DIGEST, of which PATH has to be. What stands before the first slash is a registry if it
// has a dot or a port or is localhost, as a kubelet decides it; there alone capitals can be.
var imageReference = pattern.New(`^(?:` +
	`(?:localhost|` + hostLabel + `(?:\.` + hostLabel + `)+)(?::[0-9]+)?/|` + hostLabel + `:[0-9]+/|\[[0-9A-Fa-f:]+\](?::[0-9]+)?/)?` +
	pathPart + `(?:/` + pathPart + `)*` + `(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` +
	`(?:@[a-z][a-z0-9]*(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,})?$`)

const (
	hostLabel = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	pathPart  = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
)
