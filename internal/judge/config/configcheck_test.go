package config

import (
	"bytes"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/tool/golden"
)

// example reads a file under examples/configs.
func example(t *testing.T, name string) Input {
	t.Helper()
	text, err := os.ReadFile("../../../examples/configs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Name: name, Text: string(text)}
}

// kindSets are the flags of the published kind comparison.
var kindSets = []string{
	"nodeinit.enabled=true", "kubeProxyReplacement=true", "hostServices.enabled=true", "externalIPs.enabled=true",
	"nodePort.enabled=true", "hostPort.enabled=true", "cluster.name=kind", "cluster.id=1",
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		options Options
	}{
		{"rke2-article", []string{"rke2-article.yaml"}, Options{}},
		{"rke2-cilium-native", []string{"rke2-cilium-native.yaml"}, Options{}},
		{"kind-article", []string{"kind-article.yaml"}, Options{As: "cilium", Sets: kindSets}},
		{"calico-ebpf-dsr", []string{"calico-ebpf-dsr.yaml"}, Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var inputs []Input
			for _, f := range c.files {
				inputs = append(inputs, example(t, f))
			}
			r, err := Check(inputs, c.options)
			if err != nil {
				t.Fatal(err)
			}
			for ext, write := range map[string]func(*bytes.Buffer) error{
				"txt":  func(b *bytes.Buffer) error { return Text(b, r) },
				"md":   func(b *bytes.Buffer) error { return Markdown(b, r) },
				"json": func(b *bytes.Buffer) error { return JSON(b, r) },
			} {
				var b bytes.Buffer
				if err := write(&b); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, c.name+"."+ext, b.Bytes())
			}
		})
	}
}

// TestDocs: docs/config.md is what the rules say.
func TestDocs(t *testing.T) {
	var b bytes.Buffer
	if err := WriteRules(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../../../../docs/config.md", b.Bytes())
}

// TestEveryExample: what lies under examples/configs can be read and comes to a profile.
func TestEveryExample(t *testing.T) {
	names, err := os.ReadDir("../../../examples/configs")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		o := Options{}
		if n.Name() == "kind-article.yaml" {
			o = Options{As: "cilium", Sets: kindSets}
		}
		r, err := Check([]Input{example(t, n.Name())}, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Measured) != 1 || r.Measured[0].Profile == "" {
			t.Errorf("%s comes to %v", n.Name(), r.Measured)
		}
	}
}
