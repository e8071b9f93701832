package cilium

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// TestQuicklyVerified bounds what the verifier does for the programs of a node, which every node of a lab waits for. A search
// that it walks for each kind of packet anew costs it several times as much.
func TestQuicklyVerified(t *testing.T) {
	const most = 100_000 // instructions
	for _, fam := range []*family{&ipv4, &ipv6} {
		spec, err := fam.host()
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Sizes: Sizes{}.withDefaults()}
		(&Node{opts: o, fam: fam}).setCapacities(spec)
		config := hostNodeConfig{HostRouting: 1, Tunnel: 1, Overlay: 3, Masquerade: 1, Nodeport: 1, NatMin: firstPort, NatMax: 65535}
		if err := spec.Variables["node"].Set(config); err != nil {
			t.Fatal(err)
		}
		coll, err := attach.Load("cilium host", spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
		if errors.Is(err, os.ErrPermission) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer coll.Close()
		for name, p := range coll.Programs {
			processed := regexp.MustCompile(`processed (\d+) insns`).FindStringSubmatch(p.VerifierLog)
			if processed == nil {
				t.Fatalf("%s of %s: no statistics in %q", name, fam, p.VerifierLog)
			}
			if n, err := strconv.Atoi(processed[1]); err != nil || n > most {
				t.Errorf("%s of %s: %s instructions, want at most %d", name, fam, processed[1], most)
			}
		}
	}
}
