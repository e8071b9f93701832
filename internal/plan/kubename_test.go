package plan

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
		{"subdomain", isSubdomain, []string{"n1", "ip-10-0-0-1.eu.compute.internal", long + long, "1"},
			[]string{"", "N1", "a_b", "a..b", "-a", "a-", "a-.b", ".a", "a b", strings.Repeat("a", 254)}},
		{"qualified", isQualified, []string{"internal-vip", "a", "example.com/internal", "service.beta.kubernetes.io/aws_lb.X", long, "a/" + long},
			[]string{"", "a b", "a/b/c", "/a", "a/", "A/b", "a_b/c", "-a", "a.", long + "a"}},
		{"label value", isLabelValue, []string{"", "x", "A_b.c-d", long}, []string{"x y", "a/b", "-a", "a-", long + "a"}},
		{"image", imageReference.MatchString, []string{
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

// TestRequestWithinLimit compares quantities in every way of writing them.
func TestRequestWithinLimit(t *testing.T) {
	for _, tt := range []struct {
		request, limit string
		wrong          bool
	}{
		{"500m", "2", false}, {"700m", "0.7", false}, {"0.7", "700m", false}, {"1", "1", false}, {"4", "", false}, {"", "1", false},
		{"2", "500m", true}, {"1.001", "1", true}, {"1k", "999", true}, {"1Ki", "1k", true},
	} {
		p := onCluster(t, func(p *Plan) { p.Cluster.CPURequest, p.Cluster.CPULimit = tt.request, tt.limit })
		err := p.Validate()
		if (err != nil) != tt.wrong || err != nil && !strings.HasPrefix(err.Error(), "kubernetes.cpuRequest: "+tt.request+" is more than the limit of "+tt.limit) {
			t.Errorf("%q of %q: %v", tt.request, tt.limit, err)
		}
	}
}
