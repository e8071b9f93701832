package kube

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// pullRole is the name of the Role in Manifest that reads the image pull Secrets of one namespace.
const pullRole = "cnibench-pull"

// copyRight is required in addition to Rights if images are pulled with Secrets.
var copyRight = Right{Resource: "secrets", Verb: "create", Namespaced: true, Why: "the copy of an image pull Secret beside the pods that are pulled with it"}

// pullRights returns the rights to copy the image pull Secrets refs, nil without refs. home is the namespace of references
// that do not name a namespace.
func pullRights(refs []string, home string) []Right {
	if len(refs) == 0 {
		return nil
	}
	rights := []Right{copyRight}
	for _, s := range api.PullSecrets(refs, home) {
		rights = append(rights, Right{
			Resource: "secrets", Verb: "get", Namespace: s.Namespace, Name: s.Name,
			Why: fmt.Sprintf("to copy the image pull Secret %s from namespace %s", s.Name, s.Namespace),
		})
	}
	return rights
}

// PullSecrets returns the image pull Secrets of this cluster's options, with their namespaces.
func (c *Cluster) PullSecrets() []api.PullSecret {
	return api.PullSecrets(c.options.PullSecrets, c.home)
}

// pullRules returns the YAML that Manifest adds for image pull Secrets: a rule of the ClusterRole, and a Role for each
// namespace of refs. The Role for references without a namespace has no namespace either, so that the context of kubectl
// decides.
func pullRules(refs []string) []byte {
	var b bytes.Buffer
	if len(refs) == 0 {
		return nil
	}
	fmt.Fprintf(&b, "  # create: %s\n  - apiGroups: [\"\"]\n    resources: [\"secrets\"]\n    verbs: [create]\n", copyRight.Why)
	names := map[string][]string{}
	var namespaces []string
	for _, s := range api.PullSecrets(refs, "") {
		if !slices.Contains(namespaces, s.Namespace) {
			namespaces = append(namespaces, s.Namespace)
		}
		names[s.Namespace] = append(names[s.Namespace], strconv.Quote(s.Name))
	}
	for _, namespace := range namespaces {
		where, line := "the namespace of the context that this is applied with", ""
		if namespace != "" {
			where, line = "namespace "+namespace, "  namespace: "+namespace+"\n"
		}
		fmt.Fprintf(&b, "---\n# The image pull Secrets in %s. Bind it there, by a RoleBinding.\n"+
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: %s\n%s"+
			"rules:\n  # get: to copy them beside the pods that are pulled with them\n"+
			"  - apiGroups: [\"\"]\n    resources: [\"secrets\"]\n    resourceNames: [%s]\n    verbs: [get]\n",
			where, pullRole, line, strings.Join(names[namespace], ", "))
	}
	return b.Bytes()
}
