package adapter

import (
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var (
	// marked matches a line that a script prints above a run: a title behind signs such as ##, a command of set -x, or a
	// prompt with a command.
	marked = pattern.New(`^(?:#{1,6}|={2,}|-{2,}|\*{2,}|~{2,}|\++|\$)[ \t]+\S.*$`)
	// own matches lines of ping, sockperf, wrk2 and uperf that look like marked lines.
	own = pattern.New(`ping statistics ---$|^# (?:dropped|cnibench)|^={2,}>|^-{2,}>|^#\[`)
	// counts matches the number, date or time of a run: "run 3 of 5", "#2", a date, a time of day.
	counts = pattern.New(`(?i)\b(?:run|round|rep|repetition|repeat|iteration|iter|try|attempt|test|trial)\b[ #:.=_-]*(?:\d+(?: *(?:/|of) *\d+)?)?|` +
		`#\d+\b|\b\d+ *(?:/|of) *\d+\b|\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}[0-9:.]*(?:Z|[+-]\d{2}:?\d{2})?)?|` +
		`(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?(?:\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* +\d{1,2}|\b\d{1,2} +(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)?[ ,]*(?:\d{4} +)?\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?(?: *(?:AM|PM))?(?: +[A-Z]{3,4})?(?: +\d{4})?`)
	// noise matches what kubectl and shells print between runs.
	noise = pattern.New(`(?i)^(?:defaulted container|pod/\S+ (?:condition met|created)|pod "|if you don't see|command terminated|unable to use a tty|warning:|all done|done|sleep(?:ing)?\b|wait(?:ing)?\b|starting\b|time="|bombarding\b|\+ (?:sleep|date|echo|true|set|wait|for|\(\()\b)`)
	// held matches a command of iperf3 that limits the sender's rate.
	held = pattern.New(`\biperf3?\b.* ((?:-b|--bitrate|--bandwidth|--fq-rate)[ =]*[1-9]\S*)`)
	// named matches a line that a script prints before a run: a word, or words followed by a colon.
	named = pattern.New(`^[A-Za-z][\w./+-]*(?:(?: [\w./+()-]+)*:)?$`)
	// level matches the log level at the start of a line.
	level = pattern.New(`^\[?(?i:info|debug|notice|log|inf)\]?:? `)
	words = pattern.New(`[\pL\pN]`)
)

// Heading returns what text, a line above a run, says about the run. It removes signs such as ##, the log level, the
// number of the run, and dates. It returns "" if nothing remains, or if the line is a message of kubectl or a shell.
func Heading(text string) string {
	text = strings.TrimSpace(text)
	if noise.MatchString(strings.Trim(text, "#=-*~ ")) || noise.MatchString(text) {
		return ""
	}
	text = level.Regexp().ReplaceAllString(text, "")
	text = counts.Regexp().ReplaceAllString(text, " ")
	text = strings.Join(strings.Fields(strings.Trim(text, "#=-*~+$`:>|,[] \t")), " ")
	if !words.MatchString(text) {
		return ""
	}
	return text
}

// longestAbove bounds the heading that Above records, in bytes.
const longestAbove = 60

// Above records the heading above a run as a condition: runs below different headings are not repetitions. It adds a
// warning if the heading is a command of iperf3 that limits the rate of TCP.
func (r *Reading) Above(heading string) {
	if heading != "" {
		r.Condition("above=" + strings.ToValidUTF8(heading[:min(len(heading), longestAbove)], ""))
	}
	if m := held.FindStringSubmatch(heading); m != nil && r.Workload.Spec != nil && r.Workload.Traits().Protocol == plan.TCP {
		r.Warn(Paced, "the command above has %s: the sender was held to that", m[1])
	}
}

// IsMarked reports whether line is a marked title or command, as scripts print it above a run.
func IsMarked(line string) bool { return marked.MatchString(line) && !own.MatchString(line) }
