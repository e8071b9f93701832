package kubetext

import (
	"strings"
	"testing"
)

func TestParseSecret(t *testing.T) {
	for s, want := range map[string][2]string{
		"registry": {"", "registry"}, "team/registry": {"team", "registry"}, "team/registry.example.com": {"team", "registry.example.com"},
	} {
		if namespace, name, err := ParseSecret(s); err != nil || namespace != want[0] || name != want[1] {
			t.Errorf("%q: %q %q %v", s, namespace, name, err)
		}
	}
	for _, s := range []string{"", "/", "/name", "team/", "a/b/c", "Team/name", "te.am/name", "na me", "-name", strings.Repeat("a", 254)} {
		if _, _, err := ParseSecret(s); err == nil || !strings.Contains(err.Error(), "want name, or namespace/name") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add("team/registry")
	f.Fuzz(func(t *testing.T, s string) {
		namespace, name, err := ParseSecret(s)
		if again := strings.TrimPrefix(namespace+"/"+name, "/"); err == nil && again != s {
			t.Errorf("%q became %q", s, again)
		}
	})
}
