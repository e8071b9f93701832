package follow

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// kernelWith is the BTF of a kernel that has some tracepoints.
func kernelWith(t *testing.T, names ...string) *btf.Spec {
	t.Helper()
	var b btf.Builder
	for _, name := range names {
		if _, err := b.Add(&btf.Typedef{Name: "btf_trace_" + name, Type: &btf.Int{Name: "int", Size: 4}}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestKernelsWithoutTracepoints: what nothing works without is an error that names it; without others, less is seen, and
// that is said.
func TestKernelsWithoutTracepoints(t *testing.T) {
	spec, err := loadPrograms()
	if err != nil {
		t.Fatal(err)
	}
	all := len(spec.Programs)
	_, err = fitToTracepoints(spec, kernelWith(t, "netif_receive_skb"))
	if !errors.Is(err, ErrNoTracepoint) || !strings.Contains(err.Error(), "net_dev_start_xmit") || advice.Of(err) == "" {
		t.Errorf("without transmission: %v", err)
	}
	missing, err := fitToTracepoints(spec, kernelWith(t, "net_dev_start_xmit", "netif_receive_skb", "netif_rx", "net_dev_queue", "sk_data_ready", "tcp_probe"))
	if err != nil || len(missing) != 2 || len(spec.Programs) != all-2 || spec.Programs["on_send"] != nil {
		t.Errorf("of %d programs %d are left, missing %q: %v", all, len(spec.Programs), missing, err)
	}
	f := Follower{o: Options{Ports: []int{7000}}, names: hosts{}}
	if s, err := f.prepareSettings(spec); err != nil || s.Begin != 3 {
		t.Errorf("without the tracepoint of sending, a transaction begins at point %d: %v", s.Begin, err)
	}
}
