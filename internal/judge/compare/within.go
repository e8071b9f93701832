package compare

import "github.com/cnibench/cnibench/internal/judge/stat"

// Within compares the profiles of one result with its baseline, which was measured in turn with them. In the returned
// pair A is the baseline and B another profile. A cell that the baseline lacks has an A without a number.
func Within(s Side) *Pair {
	p := &Pair{A: s, B: s, Confidence: s.Confidence, Margin: s.Margin}
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.Profile == s.Baseline {
			continue
		}
		k := c.Key
		k.Profile = s.Baseline
		base := s.at[k]
		if base == nil {
			base = &Cell{Key: k}
		}
		m := p.plainMatch(base, c)
		if m.levels != nil {
			m.levels = &[2]stat.Level{s.contrastLevel(c), s.contrastLevel(base)}
			m.Plain = m.scaledTestBy(stat.StudentT, p.Confidence)(1)
		}
		// Filters choose by the profile that is judged.
		named := *m.A
		named.Key = c.Key
		m.A = &named
		p.Matches = append(p.Matches, m)
	}
	p.judgeMatches()
	return p
}
