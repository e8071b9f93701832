package profile

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCNIs: names, DaemonSets and plugins are of one CNI each, and a family that a CNI names has profiles. A ConfigMap may
// be of several: Google's build of Cilium reads Cilium's.
func TestCNIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/profiles.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, c := range CNIs() {
		if len(c.Daemons) == 0 || c.Title == "" {
			t.Errorf("%s has no DaemonSet or no title", c.Name)
		}
		for _, key := range slices.Concat([]string{"name " + c.Name}, prefixed("daemon ", c.Daemons), prefixed("plugin ", c.Plugins), prefixed("chart ", c.Charts)) {
			if other, twice := seen[key]; twice {
				t.Errorf("%s is of %s and of %s", key, other, c.Name)
			}
			seen[key] = c.Name
		}
		if c.Family != "" {
			if !slices.ContainsFunc(All(), func(p Profile) bool { return p.Family == c.Family }) {
				t.Errorf("%s: no profile is of family %s", c.Name, c.Family)
			}
			continue
		}
		for _, want := range slices.Concat([]string{c.Name}, c.Daemons) {
			if !strings.Contains(string(page), "`"+want+"`") {
				t.Errorf("docs/reference/profiles.md does not name %s of %s", want, c.Title)
			}
		}
	}
	for _, of := range []struct {
		kind, name, version, want string
	}{
		{"DaemonSet", "aws-node", "apps/v1", "aws-vpc"},
		{"ConfigMap", "antrea-config", "v1", "antrea"},
		{"Subnet", "join", "kubeovn.io/v1", "kube-ovn"},
		{"Deployment", "aws-node", "apps/v1", ""},
		{"Service", "x", "v1", ""},
	} {
		if c, _ := CNIOfObject(of.kind, of.name, of.version); c.Name != of.want {
			t.Errorf("%s %s: %q, want %q", of.kind, of.name, c.Name, of.want)
		}
	}
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, prefix+n)
	}
	return all
}
