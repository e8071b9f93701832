package pattern

// CutOutside cuts text at the first separator that is not within parentheses. found reports whether there is one.
func CutOutside(text string, separator rune) (before, after string, found bool) {
	depth := 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == separator && depth <= 0:
			return text[:i], text[i+len(string(c)):], true
		}
	}
	return text, "", false
}

// SplitOutside splits text at the separators that are not within parentheses.
func SplitOutside(text string, separator rune) (parts []string) {
	for more := true; more; {
		var part string
		part, text, more = CutOutside(text, separator)
		parts = append(parts, part)
	}
	return parts
}
