package number

import (
	"strconv"
	"strings"
	"unicode"
)

// Clean makes text of an untrusted file safe to print: characters that are not printable (control characters, ESC,
// bidirectional overrides, bytes that are not UTF-8) become U+FFFD, and line breaks and tabs become spaces.
func Clean[S ~string](s S) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, string(s))
}

// markup escapes the markup of Markdown and HTML.
var markup = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	`\`, `\\`, "`", "\\`", "|", `\|`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "!", `\!`, "~", `\~`,
	// A zero-width joiner would prevent it as well, but the entity survives copying: no link, no mention.
	"://", "&#58;//", "@", "&#64;",
)

// Markdown makes text of an untrusted file safe in Markdown and its tables: it cleans the text and escapes all markup.
func Markdown(s string) string { return markup.Replace(Clean(s)) }

// few is the largest number of names that Few lists.
const few = 8

// Few joins the first names of a list and appends the number of further ones.
func Few(names []string) string {
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and " + strconv.Itoa(len(names)-few) + " more"
	}
	return strings.Join(names, ", ")
}

// Counted returns a number with its noun: "1 trial", "2 trials".
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Hang wraps text to width columns after a lead; each further line begins with rest instead.
func Hang(lead, rest, text string, width int) []string {
	lines := Wrap(text, width-Width(lead))
	for i, l := range lines {
		lines[i] = lead + l
		lead = rest
	}
	return lines
}

// Width is the number of terminal columns that s takes: combining marks take none, East Asian wide characters and most
// emoji two. It knows the large blocks only, which is enough for names.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || unicode.IsControl(r):
		return 0
	case r >= 0x1100 && r <= 0x115f, // Hangul Jamo
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, // CJK, Kana, Yi
		r >= 0xac00 && r <= 0xd7a3,                // Hangul
		r >= 0xf900 && r <= 0xfaff,                // CJK compatibility
		r >= 0xfe30 && r <= 0xfe6f,                // CJK forms
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f900 && r <= 0x1f9ff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Left pads s with spaces on its right to width columns; longer text is returned as it is.
func Left(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// Right pads s with spaces on its left to width columns; longer text is returned as it is.
func Right(s string, width int) string { return strings.Repeat(" ", max(0, width-Width(s))) + s }

// Truncate cuts s to at most width columns, the last of which is "…" if anything was cut.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n+runeWidth(r) > width-1 {
			return s[:i] + "…"
		}
		n += runeWidth(r)
	}
	return s
}

// Wrap breaks s at spaces into lines of at most width columns; a word that is longer has a line of its own.
func Wrap(s string, width int) []string {
	var lines []string
	line, n := "", 0
	for _, word := range strings.Fields(s) {
		w := Width(word)
		if n > 0 && n+1+w > width {
			lines, line, n = append(lines, line), "", 0
		}
		if n > 0 {
			line, n = line+" ", n+1
		}
		line, n = line+word, n+w
	}
	if n > 0 {
		lines = append(lines, line)
	}
	return lines
}
