package plan

import (
	"fmt"
	"maps"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

// Schemas of values in plan files. YAML writes many of them without quotes, so a text may be a number.
var (
	durationSchema = anyOf(patternSchema(`^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$|^0$`), map[string]any{"const": 0})
	rateSchema     = anyOf(atLeastZero, patternSchema(`^[0-9.]+([eE][+-]?[0-9]+)?[kKmMgGtT]?$`))
	shareSchema    = anyOf(atLeastZero, patternSchema(`^[0-9.]+([eE][+-]?[0-9]+)?%?$`))
	loadSchema     = anyOf(atLeastZero, patternSchema(`^[0-9.]+%?(\.\.[0-9.]+%?)?( *, *[0-9.]+%?(\.\.[0-9.]+%?)?)*$`))
	textSchema     = map[string]any{"type": []string{"string", "number", "boolean"}}
	labelsSchema   = map[string]any{"type": "object", "additionalProperties": textSchema}
	atLeastZero    = map[string]any{"type": "number", "minimum": 0}
)

func anyOf(all ...map[string]any) map[string]any { return map[string]any{"anyOf": all} }

func enumSchema[T any](words ...T) map[string]any { return map[string]any{"enum": words} }

func patternSchema(pattern string) map[string]any {
	return map[string]any{"type": "string", "pattern": pattern}
}

func listSchema(item map[string]any) map[string]any {
	return map[string]any{"type": "array", "items": item, "minItems": 1}
}

func wholeSchema(low, high int) map[string]any {
	return map[string]any{"type": "integer", "minimum": low, "maximum": high}
}

func sizeSchema(high int) map[string]any {
	return anyOf(wholeSchema(1, high), patternSchema(`^[0-9]+(Ki|Mi)?$`))
}

// variantSchema offers the names of profiles. A variant with a context or conditions is any text with its signs.
func variantSchema() map[string]any {
	return anyOf(enumSchema(append(profile.Names(), profile.Host, Detected)...), patternSchema(`[@(]`))
}

// workloadSchema is that of the text form, or of a mapping of one kind to its options.
func workloadSchema() map[string]any {
	names := Texts(Kinds())
	byName := map[string]any{}
	for i, k := range kinds {
		options := map[string]any{}
		for _, o := range k.options {
			options[o.Key] = described(anyOf(o.schema, listSchema(o.schema)), o.Help, o.Values, o.Default(k.name))
		}
		byName[names[i]] = map[string]any{
			"description": "It sends " + k.about + ".", "type": []string{"object", "null"}, "properties": options, "additionalProperties": false,
		}
	}
	return anyOf(
		enumSchema(names...),
		patternSchema(fmt.Sprintf(`^(%s)\(.*\)$`, strings.Join(names, "|"))),
		map[string]any{"type": "object", "properties": byName, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	)
}

// described returns the schema with a description for editors.
func described(schema map[string]any, help, allowed, usual string) map[string]any {
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

// Schema returns the JSON Schema of plan files, made from the settings and the options of workloads.
func Schema() map[string]any {
	usual := Default()
	mapping := func(prefix string) map[string]any {
		properties := map[string]any{}
		for _, s := range Settings() {
			if key, ok := strings.CutPrefix(s.Key, prefix); ok && !strings.Contains(key, ".") {
				properties[key] = described(s.schema, s.Help, s.Range, s.Text(usual))
			}
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	}
	root := mapping("")
	keys := root["properties"].(map[string]any)
	keys["apiVersion"], keys["kind"] = map[string]any{"const": APIVersion}, map[string]any{"const": "Plan"}
	keys["lab"], keys["kubernetes"] = mapping("lab."), mapping("kubernetes.")
	root["required"] = []string{"apiVersion", "kind"}
	return root
}
