package kubetext

import (
	"strings"
	"testing"
)

// TestKubeNames has names as Kubernetes takes and refuses them.
func TestKubeNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tt := range []struct {
		what      string
		is        func(string) bool
		good, bad []string
	}{
		{"subdomain", IsSubdomain, []string{"n1", "ip-10-0-0-1.eu.compute.internal", long + long, "1"},
			[]string{"", "N1", "a_b", "a..b", "-a", "a-", "a-.b", ".a", "a b", strings.Repeat("a", 254)}},
		{"qualified", IsQualified, []string{"internal-vip", "a", "example.com/internal", "service.beta.kubernetes.io/aws_lb.X", long, "a/" + long},
			[]string{"", "a b", "a/b/c", "/a", "a/", "A/b", "a_b/c", "-a", "a.", long + "a"}},
		{"label value", IsLabelValue, []string{"", "x", "A_b.c-d", long}, []string{"x y", "a/b", "-a", "a-", long + "a"}},
		{"image", ImageReference.MatchString, []string{
			"cnibench", "cnibench:v1", "team/cnibench", "localhost/x", "localhost:5000/x", "registry:5000/a/b_c/d__e:V1.2_x", "Registry.Example.com/x", "10.0.0.1:5000/x",
			"[fd00::1]:5000/x:1", "example.com/x:1@sha256:" + strings.Repeat("0a", 32), "x@sha256:" + strings.Repeat("0a", 32)},
			[]string{"a b", "Team/cnibench", "example.com/Team/x", "example.com/X:1", "https://example.com/x", "x:", "x: 1", " x", "x/", "/x", "x@sha256:12", "a//b", "x:-1"}},
	} {
		for _, s := range tt.good {
			if !tt.is(s) {
				t.Errorf("%s %q is refused", tt.what, s)
			}
		}
		for _, s := range tt.bad {
			if tt.is(s) {
				t.Errorf("%s %q is taken", tt.what, s)
			}
		}
	}
}
