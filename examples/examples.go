// Package examples has the plans that repeat published comparisons exactly, and what was published.
package examples

import "embed"

// Articles has exact/NAME.yaml, the plan of an article as it was run, and published/NAME.csv, its numbers and claims.
//
//go:embed exact/*.yaml published/*.csv
var Articles embed.FS
