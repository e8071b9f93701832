package main

import (
	"regexp"
	"slices"
	"strings"
)

// The largest number of words in a sentence: in help and errors, and in pages.
const (
	maxWords     = 15
	maxPageWords = 20
)

// Rules about length.
const (
	longHelp  = "long sentence in help"
	longError = "long sentence in an error"
	longPage  = "long sentence in a page"
)

// phrase is a way of writing that a reader has to read twice.
type phrase struct {
	// name is the pattern as a person would write it, with its replacement.
	name    string
	pattern *regexp.Regexp
}

// find returns the parts of text that the pattern matches; "there is no route" is plain English.
func (p phrase) find(text string) []string {
	return slices.DeleteFunc(p.pattern.FindAllString(text, -1), func(s string) bool { return strings.HasPrefix(strings.ToLower(s), "there ") })
}

func say(name, pattern string) phrase {
	return phrase{name, regexp.MustCompile(`(?i)` + pattern)}
}

// phrases are the patterns that came back most often. Each has its replacement.
var phrases = []phrase{
	say(`"is no X": write "is not a X"`, `\b(?:there )?(?:is|are|was|were) no (?:[a-z]+)\b`),
	say(`"nobody", "whoever": name who`, `\b(?:nobody|somebody|whoever|nobody's|somebody's)\b`),
	say(`"who X" without a person: name who`, `(?:^|[.;:,] |\b(?:for|to|of|by|from) )who (?:is|has|asks|reads|writes|says|wants|raised|made|names|calls|waits|looks|measures)\b`),
	say(`"cannot be had": write "is not available"`, `\b(?:cannot|can not|can|could|to) be had\b`),
	say(`"is had": write "has"`, `\b(?:is|are|was) had\b`),
	say(`"is told": name who reports what`, `\b(?:is|are|was|were) told\b`),
	say(`"told apart": write "differ"`, `\btold apart\b`),
	say(`"is taken away": write "removed"`, `\btaken away\b`),
	say(`"what lacks": write "missing"`, `\bwhat lacks\b`),
	say(`"goes on": write "continues"`, `\bgo(?:es)? on\b`),
	say(`"comes to": name the result`, `\b(?:comes|came) to (?:be|an end|its end|nothing|\d)`),
	say(`"from which on": write "from"`, `\bfrom which on\b`),
	say(`"stands" for exists: write "exists" or "runs"`, `\b(?:stands|stood|standing) (?:there|already|beside|still|on the node|in the way|alone)\b`),
	say(`"falls due": write "is scheduled"`, `\bf[ae]ll(?:s|en)? due\b`),
	say(`"goes for": write "applies to"`, `\bgoes for\b`),
	say(`"it is none": name the thing`, `\b(?:there |it )?is none\b`),
	say(`"is to be": write "must" or "will"`, `\b(?:is|are) to be\b`),
	say(`"as long as may be": plain words`, `\b(?:may|might) be (?:had|told|said)\b`),
	say(`"all alike": write "every"`, `\ball alike\b`),
	say(`"said once", "is said": write "reports" or "prints"`, `\b(?:is|are|was|were) said\b`),
	say(`"held against": write "compared with" or "checked against"`, `\bheld against\b`),
	say(`"set beside": write "compared with"`, `\bset beside\b`),
	say(`"what came of X": write "the result of X"`, `\bwhat (?:came|comes|became|becomes) of\b`),
	say(`"gives way": write "is dropped" or "ends"`, `\bg[ai]ves? way\b`),
	say(`"bears to": write "may" or "waits"`, `\b(?:bears?|bore) to (?:hear|see|wait|be)\b`),
}
