package position

import (
	"maps"
	"strings"
)

// JSON Schemas of values. Many texts need no quotes in YAML, so a number or a boolean may be a text.
var (
	Duration    = AnyOf(Pattern(`^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$|^0$`), map[string]any{"const": 0})
	Rate        = AnyOf(atLeastZero, Pattern(`^[0-9.]+([eE][+-]?[0-9]+)?[kKmMgGtT]?$`))
	Share       = AnyOf(atLeastZero, Pattern(`^[0-9.]+([eE][+-]?[0-9]+)?%?$`))
	Load        = AnyOf(atLeastZero, Pattern(`^[0-9.]+%?(\.\.[0-9.]+%?)?( *, *[0-9.]+%?(\.\.[0-9.]+%?)?)*$`))
	Text        = map[string]any{"type": []string{"string", "number", "boolean"}}
	Labels      = map[string]any{"type": "object", "additionalProperties": Text}
	atLeastZero = map[string]any{"type": "number", "minimum": 0}
)

func AnyOf(all ...map[string]any) map[string]any { return map[string]any{"anyOf": all} }

func Enum[T any](words ...T) map[string]any { return map[string]any{"enum": words} }

func Pattern(pattern string) map[string]any {
	return map[string]any{"type": "string", "pattern": pattern}
}

func ListOf(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item, "minItems": 1}
}

func Whole(low, high int) map[string]any {
	return map[string]any{"type": "integer", "minimum": low, "maximum": high}
}

func Size(high int) map[string]any {
	return AnyOf(Whole(1, high), Pattern(`^[0-9]+(Ki|Mi)?$`))
}

// Described returns a copy of the schema with a description for editors. It has help, the allowed values and the
// default value usual; "" leaves out either.
func Described(schema map[string]any, help, allowed, usual string) map[string]any {
	text := strings.ReplaceAll(help, "`", "")
	if allowed != "" {
		text += "; " + allowed
	}
	if usual != "" {
		text += "; default " + usual
	}
	out := maps.Clone(schema)
	out["description"] = text
	return out
}
