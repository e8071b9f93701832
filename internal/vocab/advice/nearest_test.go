package advice

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"run", "canal", "calico-vxlan", "calico-ipip", "host", "tunnelProtocol"}
	for word, want := range map[string]string{
		"canel":                     "canal",
		"CANAL":                     "canal",
		"calico-vxlna":              "calico-vxlan",
		"tunnelprotocoll":           "tunnelProtocol",
		"hots":                      "host",
		"rnu":                       "run",
		"rum":                       "run",
		"xyz":                       "",
		"xy":                        "",
		"":                          "",
		"weave":                     "",
		strings.Repeat("canal", 99): "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("canal", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abcd", "bcd", 1}, {"ab", "ba", 1}} {
		if got, back := editDistance(c.a, c.b), editDistance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q, %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"run", "canal", "calico-vxlan", "calico-ipip"}
	for word, want := range map[string]string{
		"canel":  `, did you mean "canal"?`,
		"calico": ", did you mean one of calico-vxlan, calico-ipip?",
		"weave":  "",
	} {
		if got := DidYouMean(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestSlip(t *testing.T) {
	names := []string{"cilium-native", "calico-ebpf", "canal", "aws-vpc"}
	for word, want := range map[string]string{
		"cillium-native": "cilium-native", "cilium-natvie": "cilium-native", "canel": "canal", "aws-vcp": "aws-vpc",
		"calico-vpp": "", "cnl": "", "my-cni": "", "": "",
	} {
		if got := Slip(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
