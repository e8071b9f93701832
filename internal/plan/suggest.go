package plan

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// suggest returns `, did you mean "x"?` for the closest of names, or those that s is the first word of, or "" when none
// is near.
func suggest(s string, names []string) string {
	var longer []string
	for _, n := range names {
		if strings.HasPrefix(n, s+"-") {
			longer = append(longer, n)
		}
	}
	if len(longer) > 0 {
		return ", did you mean one of " + strings.Join(longer, ", ") + "?"
	}
	at := advice.Nearest(s, names)
	if at == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", at)
}
