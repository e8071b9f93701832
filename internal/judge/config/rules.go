package config

import (
	_ "embed" // the page
	"sync"

	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// page is docs/config.md, which has the words of each rule.
//
//go:generate cp page.md ../../../docs/config.md
//go:embed page.md
var page string

var rules = sync.OnceValue(func() finding.Rules { return finding.ParseRules(page) })

// Rules returns all rules in the order of the documentation.
func Rules() []finding.Rule { return rules() }
