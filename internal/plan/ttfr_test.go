package plan

import (
	"testing"
	"time"
)

func TestTTFR(t *testing.T) {
	w, err := ParseWorkload("ttfr")
	if err != nil || w.Traits().Rate != defaultPodRate || w.String() != "ttfr" {
		t.Fatalf("%v %v", w, err)
	}
	for _, text := range []string{"ttfr(rate=0)", "ttfr(rate=1K)", "ttfr(udp)", "ttfr(flows=2)", "ttfr(timeout=1ms)"} {
		if w, err := ParseWorkload(text); err == nil {
			t.Errorf("%s is taken as %v", text, w)
		}
	}
	for path, served := range map[Path]bool{
		{Pod, Pod, CrossNode}: true, {Pod, Service, Remote}: true, {Pod, External, anywhere}: true,
		{Host, Host, CrossNode}: false, {Pod, Self, anywhere}: false, {External, NodePort, Local}: false,
	} {
		if why := w.Barred(path); (why == "") != served {
			t.Errorf("%s: %q", path, why)
		}
	}
	if w.whyUnfit(400*time.Millisecond) == "" || w.whyUnfit(500*time.Millisecond) != "" {
		t.Error("a window of half a second has the first pod")
	}
	p := Preset("standard")
	p.Workloads = []Workload{w}
	if got := p.Fit(10).Duration; got != 10*time.Second {
		t.Errorf("window %s for 20 pods", got)
	}
	for _, c := range p.Cases() {
		if isRaw(c.Profile) {
			t.Errorf("%s has no pods", c.Key())
		}
	}
}
