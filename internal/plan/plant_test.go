package plan

import "testing"

func TestPlants(t *testing.T) {
	s, _ := SettingOf("plant")
	p := Default()
	p.Lab.Nodes = 9
	const text = "node-3=delay:2ms,node-5/node-9=loss:1%,node-7=rate:100M"
	if err := s.Set(&p, text); err != nil || s.Text(p) != text || p.Lab.whyContradictory() != "" {
		t.Errorf("%v: %s, %s", err, s.Text(p), p.Lab.whyContradictory())
	}
	for text, want := range map[string]string{
		"node-3":                "\"node-3\": want NODE=delay:2ms, NODE=rate:100M or NODE/NODE=loss:1%",
		"node-3=delay:0s":       "node-3: 0s is out of range: want more than 0, at most 1s",
		"node-3=heat:1":         `node-3: unknown fault "heat": want delay, loss or rate`,
		"node-3=rate:1":         "node-3: 1 is out of range: want 100K to 1T",
		"node-3=loss:0%,node-4": "node-3: want a loss of more than 0; \"node-4\": want NODE=delay:2ms, NODE=rate:100M or NODE/NODE=loss:1%",
	} {
		if err := s.Set(&p, text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"node-10=delay:2ms":                 `planted faults: node-10: there is no node "node-10" among 9`,
		"node-1/node-2=delay:2ms":           "planted faults: node-1/node-2: a link can lose frames; delay and rate are of a node",
		"node-1/node-1=loss:1%":             "planted faults: node-1/node-1 is not a link",
		"node-1=loss:1%,node-1=loss:2%":     "planted faults: node-1 is given twice",
		"node-1=loss:1%,node-1=delay:100ms": "",
	} {
		if err := s.Set(&p, text); err != nil || p.Lab.whyContradictory() != want {
			t.Errorf("%s: %v, %q", text, err, p.Lab.whyContradictory())
		}
	}
}
