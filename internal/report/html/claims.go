package html

import "github.com/cnibench/cnibench/internal/report"

// claims is what the result says about published comparisons.
type claims struct {
	Tally   string
	Sources []plain
}

// claims judges what was published; nil unless the result can test any of it.
func (b *builder) claims() *claims {
	if b.d.Analysis == nil {
		return nil
	}
	tally, sections := report.Claims(b.d.Analysis)
	if len(sections) == 0 {
		return nil
	}
	return &claims{Tally: tally, Sources: plains(sections)}
}
