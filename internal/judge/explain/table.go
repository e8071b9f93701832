package explain

import (
	_ "embed" // the table
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

//go:embed parts.txt
var partsText string

// Part is a piece of a path's CPU time.
type Part struct {
	// ID is stable. Family names its group, Title the part itself.
	ID     string `json:"id"`
	Family string `json:"family"`
	Title  string `json:"title"`
}

// Unexplained is the part of stacks without a function in the table. switchPart is the lab's own switch, userPart the load
// generator's own work.
var (
	Unexplained = Part{"unexplained", "not explained", "not explained"}
	switchPart  = Part{"switch", "switch", "the switch between nodes"}
	userPart    = Part{"user", "system", "load generator (user space)"}
	// encryptionPart is WireGuard, in the kernel and in user space.
	encryptionPart = Part{"wireguard", "tunnel", "WireGuard and encryption"}
)

// rule maps a function, called by caller if that is set, to a part.
type rule struct {
	function, caller, reason string
	part                     Part
}

// table has the rules that map functions to parts, from parts.txt.
type table struct {
	exact map[string][]rule
	globs []rule // the longest first
	hooks map[string]string
	// border has the functions at which the search for a calling BPF program ends.
	border map[string]bool
}

var parts = sync.OnceValues(func() (*table, error) { return parseTable(partsText) })

// parseTable parses the text of a table. It fails at a malformed line.
func parseTable(text string) (*table, error) {
	t := &table{exact: map[string][]rule{}, hooks: map[string]string{}, border: map[string]bool{}}
	var now Part
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
		case words[0] == "border":
			for _, name := range words[1:] {
				t.border[name] = true
			}
		case words[0] == "hook" && len(words) > 2:
			for _, name := range words[2:] {
				t.hooks[name] = words[1]
			}
		case line[0] == '[':
			id, rest, ok := strings.Cut(line[1:], "] ")
			family, title, named := strings.Cut(rest, ": ")
			if !ok || !named {
				return nil, fmt.Errorf("table of parts, line %d: want [id] family: title", i+1)
			}
			now = Part{id, family, title}
		default:
			pattern, reason, ok := strings.Cut(line, "  ")
			if !ok || now.ID == "" {
				return nil, fmt.Errorf("table of parts, line %d: want a function and a reason, in a part", i+1)
			}
			function, caller, _ := strings.Cut(pattern, " < ")
			t.add(rule{function, caller, strings.TrimSpace(reason), now})
		}
	}
	slices.SortStableFunc(t.globs, func(x, y rule) int { return len(y.function) - len(x.function) })
	return t, nil
}

func (t *table) add(r rule) {
	if strings.Contains(r.function, "*") {
		t.globs = append(t.globs, r)
		return
	}
	t.exact[r.function] = append(t.exact[r.function], r)
}

// findRule returns the rule for a function. A rule with the caller takes precedence.
func (t *table) findRule(function, caller string) (found rule, ok bool) {
	for _, r := range t.exact[function] {
		if r.matchesCaller(caller) && (!ok || found.caller == "") {
			found, ok = r, true
		}
	}
	if ok {
		return found, true
	}
	return each.First(t.globs, func(r rule) bool { return globMatches(r.function, function) && r.matchesCaller(caller) })
}

func (r rule) matchesCaller(caller string) bool {
	return r.caller == "" || globMatches(r.caller, caller)
}

func globMatches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok && !strings.Contains(prefix, "*") {
		return strings.HasPrefix(name, prefix)
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

// plainName returns a function's name without the suffix that a compiler adds to a part or a copy of it.
func plainName(name string) string {
	for _, suffix := range []string{".isra.", ".constprop.", ".part.", ".cold", ".llvm."} {
		if i := strings.Index(name, suffix); i > 0 {
			name = name[:i]
		}
	}
	return name
}

// programName returns NAME for a function called bpf_prog_TAG_NAME, which is a BPF program. Without a name it returns
// the tag, and "" for other functions.
func programName(function string) string {
	rest, ok := strings.CutPrefix(function, sample.ProgramPrefix)
	if !ok || len(rest) < 16 {
		return ""
	}
	if len(rest) < 18 {
		return rest
	}
	return rest[17:]
}

// partOfStack returns the part that a stack belongs to. A stack has the network namespace first, then functions, outermost
// first.
func (t *table) partOfStack(stack []string) Part {
	if len(stack) == 0 {
		return Unexplained
	}
	if stack[0] == sample.SwitchSpace {
		return switchPart
	}
	switch user := isUserFrame(stack[len(stack)-1]); {
	case user && stack[0] == "kernel": // a thread that does the kernel's work
		return encryptionPart
	case user:
		return userPart
	}
	own, border := Unexplained, false
	for i := len(stack) - 1; i > 0 && !isUserFrame(stack[i]); i-- {
		function, caller := plainName(stack[i]), plainName(stack[i-1])
		if name := programName(function); name != "" && !border {
			return Part{programID + name, "BPF", "BPF program " + name}
		}
		if own == Unexplained {
			if r, ok := t.findRule(function, caller); ok {
				own = t.partWithHook(r.part, stack[:i+1])
			}
		}
		if border = border || t.border[function]; border && own != Unexplained {
			break
		}
	}
	return own
}

// isUserFrame reports whether a frame is in user space. Names of Go functions have a dot, names of kernel functions have
// none.
func isUserFrame(frame string) bool {
	return strings.Contains(plainName(frame), ".") || frame == userFrame
}

// userFrame stands for a function in user space whose name is unknown.
const userFrame = "[user]"

// partWithHook returns p with each * replaced by the hook of the innermost function that runs a hook. If no function of
// the stack does, it is replaced by "elsewhere".
func (t *table) partWithHook(p Part, stack []string) Part {
	if !strings.Contains(p.ID, "*") {
		return p
	}
	where := "elsewhere"
	for _, name := range slices.Backward(stack) {
		if hook := t.hooks[plainName(name)]; hook != "" {
			where = hook
			break
		}
	}
	return Part{strings.ReplaceAll(p.ID, "*", where), p.Family, strings.ReplaceAll(p.Title, "*", where)}
}
