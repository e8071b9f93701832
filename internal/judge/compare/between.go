package compare

import "github.com/cnibench/cnibench/internal/judge/stat"

// Between sets c beside base, two cells of one run, whatever the baseline of the analysis is: trials of the same repetition
// are pairs. The p value is that of this comparison alone.
func Between(c, base Cell, confidence float64) stat.Effect { return effect(&c, &base, confidence) }
