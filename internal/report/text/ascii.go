package text

import (
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
)

// signs replaces the signs of a report, other than superscripts, by ASCII.
var signs = strings.NewReplacer("µ", "u", "±", "+-", "─", "-", "–", "-", "…", "~", "≈", "same", "▲", "better", "▼", "worse", "×", "x")

// toASCII replaces the signs in s by ASCII if p.ascii is true. Superscript numbers become numbers in brackets. Letters of
// other alphabets remain.
func (p *printer) toASCII(s string) string {
	if !p.ascii {
		return s
	}
	const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
	var b strings.Builder
	raised := false
	for _, r := range s {
		at := strings.IndexRune(digits, r)
		number := at >= 0
		switch {
		case number && !raised:
			b.WriteByte('[')
		case !number && raised && r != ',':
			b.WriteByte(']')
		}
		raised = number || raised && r == ','
		if number {
			b.WriteRune(rune('0' + len([]rune(digits[:at]))))
		} else {
			b.WriteRune(r)
		}
	}
	if raised {
		b.WriteByte(']')
	}
	return signs.Replace(b.String())
}

// verdictMark returns the sign of a verdict. If p.ascii is true, it returns a word or "?".
func (p *printer) verdictMark(v compare.Verdict) string {
	switch {
	case !p.ascii:
		return report.Entry{Verdict: v}.Mark()
	case v == compare.Inconclusive:
		return "?"
	}
	return string(v)
}

// claimText returns the ratio of an entry with the mark of its verdict.
func (p *printer) claimText(e report.Entry) string {
	mark := p.verdictMark(e.Verdict)
	if p.ascii && e.Ratio != "" && mark != "" {
		mark = " " + mark
	}
	return e.Ratio + mark
}
