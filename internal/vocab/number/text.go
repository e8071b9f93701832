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

// markup escapes the characters that are markup in Markdown and HTML.
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

// Few returns the first names of a list, separated by commas, and the number of further names: "a, b and 3 more".
func Few(names []string) string {
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and " + strconv.Itoa(len(names)-few) + " more"
	}
	return strings.Join(names, ", ")
}

// Counted returns a number with its noun, which gets an "s" for any number but 1: "1 trial", "2 trials".
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Hang wraps text into lines, and returns them with prefixes: lead for the first line, rest for all others. A line
// has at most width columns, unless rest is wider than lead or a word is too long.
func Hang(lead, rest, text string, width int) []string {
	lines := Wrap(text, width-Width(lead))
	for i, l := range lines {
		lines[i] = lead + l
		lead = rest
	}
	return lines
}

// Width returns the number of terminal columns that s takes: 0 for combining marks, 2 for East Asian wide characters
// and most emoji. It knows only the large blocks of Unicode, which is enough for names.
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

// Left returns s padded with spaces on its right to width columns. It returns a longer text unchanged.
func Left(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// Right returns s padded with spaces on its left to width columns. It returns a longer text unchanged.
func Right(s string, width int) string { return strings.Repeat(" ", max(0, width-Width(s))) + s }

// Truncate returns s cut to at most width columns. If anything was cut, it ends with "…".
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

// Wrap returns s broken at spaces into lines of at most width columns. A longer word has a line of its own.
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
