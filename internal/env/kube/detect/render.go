package detect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Finding is a verdict with what was proved of it.
type Finding struct {
	Verdict
	Proofs []Proof `json:"proofs,omitempty"`
}

// JSON writes a finding for programs.
func JSON(w io.Writer, f Finding) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(f)
}

// page writes lines in columns; the first error is kept.
type page struct {
	tabs *tabwriter.Writer
	err  error
}

func (p *page) line(cells ...string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.tabs, strings.Join(cells, "\t"))
	}
}

// Text writes a finding for people.
func Text(w io.Writer, f Finding) error {
	p := &page{tabs: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	p.head(f.Verdict)
	if len(f.Settings) > 0 {
		p.line()
		p.line("SETTING", "ASKED", "BY", "IN FORCE", "SEEN BY")
		for _, s := range f.Settings {
			p.line(s.Component+" "+s.Name, cmp.Or(s.Asked, "-"), cmp.Or(s.AskedBy, "-"), cmp.Or(s.InForce, "-"), cmp.Or(s.SeenBy, "-"))
		}
	}
	if len(f.Proofs) > 0 {
		p.line()
		p.line("PROOF", "WHERE", "CLAIMED", "SEEN", "RESULT")
		for _, x := range f.Proofs {
			p.line(x.What, cmp.Or(x.Where, "-"), cmp.Or(x.Claimed, "-"), cmp.Or(x.Seen, "-"), strings.TrimSuffix(x.Result.String()+": "+x.Why, ": "))
		}
	}
	if err := cmp.Or(p.err, p.tabs.Flush()); err != nil {
		return err
	}
	return lists(w, f.Verdict)
}

func (p *page) head(v Verdict) {
	p.line("CNI", strings.TrimSpace(cmp.Or(v.CNI, "unknown")+" "+v.Version)+by(v.Source))
	p.line("profile", strings.TrimSuffix(cmp.Or(v.Profile, "none")+": "+v.Title, ": "))
	for _, but := range v.But {
		p.line("", "but "+but)
	}
	p.line("Kubernetes", strings.TrimSpace(cmp.Or(v.Kubernetes, "unknown")+" "+v.Distribution))
	proxy := map[string]string{Yes: "mode " + cmp.Or(v.KubeProxy.Mode, "unknown"), No: "does not run", Unknown: "not known to run"}[v.KubeProxy.Runs]
	if v.KubeProxy.Runs == Unknown && v.KubeProxy.Mode != "" {
		proxy = "not known to run, rules of mode " + v.KubeProxy.Mode
	}
	p.line("kube-proxy", strings.TrimSpace(proxy+" "+v.KubeProxy.Version)+by(v.KubeProxy.Source))
	for _, c := range []struct {
		name  string
		claim Claim
	}{{"MTU of pods", v.MTU}, {"encapsulation", v.Encapsulation}, {"encryption", v.Encryption}} {
		p.line(c.name, cmp.Or(c.claim.Value, "unknown")+by(c.claim.Source))
	}
}

func by(source string) string {
	if source == "" {
		return ""
	}
	return " (" + source + ")"
}

func lists(w io.Writer, v Verdict) error {
	for _, l := range []struct {
		title string
		lines []string
	}{{"Doubts", v.Doubts}, {"Unproven", v.Unproven}} {
		if len(l.lines) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s:\n- %s\n", l.title, strings.Join(l.lines, "\n- ")); err != nil {
			return err
		}
	}
	return nil
}
